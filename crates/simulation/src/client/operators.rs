//! What people do about deliveries and hosts: replay, cancel, expunge, open gates.

use super::{Client, OrderOutcome, once};
use crate::log::GateRelease;
use aldaba_delivery::AppId;
use aldaba_engine::{Cancel, Cancelled, ChangeError, NewReplay};
use aldaba_store::{
    DeliveriesQuery, DeliveryFilter, DeliveryList, DeliveryView, Error, Phase, ReplayFilter, ReplayKind,
};

impl Client {
    pub(super) async fn open_gates(&self, door: usize) -> OrderOutcome {
        let scenario = &self.world.scenario;
        let (origin, org) = (scenario.origin(door), scenario.org_of(scenario.doors[door].tenant));
        let held = self.engine.held_hosts(org, None);
        let keys = held.into_iter().map(|host| host.key);
        let gates: Vec<_> = keys.filter(|key| key.origin == origin).collect();
        let answer = self.changed(self.directory().release_gates(gates.clone()).await);
        if !self.process.is_dead() {
            // By now the lanes have heard of it.
            let at = self.process.now();
            let mut log = self.world.log.lock();
            let step = log.step();
            log.gate_releases.push(GateRelease { step, at, gates });
        }
        answer
    }

    pub(super) async fn replay(&self, door: usize) -> OrderOutcome {
        let Some((app, endpoint)) = self.known(door) else {
            return self.not_known(door);
        };
        let scenario = &self.world.scenario;
        let now = self.process.now();
        let filter =
            ReplayFilter { since: scenario.start, dead: true, delivered: true, ..ReplayFilter::nothing(now) };
        let kind = ReplayKind::Bulk;
        let new = NewReplay {
            org: scenario.org_of(scenario.doors[door].tenant),
            app,
            endpoint,
            kind,
            filter,
            rate: 50,
        };
        let started = self.engine.replays().start(&self.actor(), new, once("replay", door)).await;
        self.changed(started.map(drop))
    }

    pub(super) async fn cancel(&self, tenant: usize) -> Result<(), Error> {
        let store = self.engine.store();
        let Some(application) = store.application(self.which(tenant)).await? else {
            return Ok(());
        };
        let query = pending(application.id);
        let found = store.delivery_list(query).await?.found;
        let wanted: Vec<_> = found.iter().filter_map(|(_, view)| cancel(view)).collect();
        let seqs: Vec<_> = wanted.iter().map(|cancel| cancel.pending.seq).collect();
        if self.process.is_dead() {
            return Err(Error::Closed);
        }
        self.world.notes.lock().to_cancel.extend(&seqs);
        let fates = self.engine.cancel(self.entry("delivery.cancel"), wanted).await?;
        if !self.process.is_dead() {
            let now = self.process.now();
            self.world.log.lock().note(now, || format!("cancel {seqs:?}: {fates:?}"));
            let done = seqs.iter().zip(fates).filter(|(_, fate)| *fate == Cancelled::Done);
            self.world.notes.lock().cancelled.extend(done.map(|(seq, _)| *seq));
        }
        Ok(())
    }

    /// The payload of what waits next, if anything does.
    pub(super) async fn expunge(&self, tenant: usize) -> OrderOutcome {
        let store = self.engine.store();
        let found = async {
            let Some(application) = store.application(self.which(tenant)).await? else {
                return Ok(None);
            };
            let found = store.delivery_list(pending(application.id)).await?.found;
            Ok(found.first().map(|(_, view)| (application.id, view.status.message)))
        };
        let (app, message) = match found.await {
            Ok(Some(found)) => found,
            Ok(None) => return OrderOutcome::Done,
            Err(error) => return self.changed(Err(ChangeError::Store(error))),
        };
        if self.process.is_dead() {
            return OrderOutcome::Unknown;
        }
        self.world.notes.lock().to_expunge.insert(message);
        let expunged = self.engine.expunge_message(&self.actor(), app, message).await;
        if self.process.is_dead() {
            return OrderOutcome::Unknown;
        }
        let mut log = self.world.log.lock();
        log.note(self.process.now(), || format!("expunge {message}: {expunged:?}"));
        if expunged.is_ok() {
            let step = log.step();
            log.expunged.push((message, step));
        }
        drop(log);
        match expunged {
            // It has ended and is not kept any more.
            Err(ChangeError::NotFound) => OrderOutcome::Done,
            other => self.changed(other),
        }
    }
}

pub(super) fn pending(app: AppId) -> DeliveriesQuery {
    let (filter, order) = (DeliveryFilter::default(), aldaba_store::Order::Ascending);
    DeliveriesQuery {
        list: DeliveryList::Of(app, Phase::Pending),
        filter,
        from: None,
        order,
        limit: 10,
        walk: 1000,
    }
}

fn cancel(view: &DeliveryView) -> Option<Cancel> {
    Some(Cancel { app: view.app, endpoint: view.status.endpoint, pending: view.status.waiting()? })
}
