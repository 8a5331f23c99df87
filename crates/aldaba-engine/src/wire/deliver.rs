//! One request over one connection, whichever protocol it speaks.

use super::connect::{self, in_time};
use super::exchange::{Exchanged, Interrupted, exchange};
use super::lines::Slot;
use super::multiplex::{Line, StageCell};
use super::pool::Loan;
use super::progress::Stage;
use super::queue::{Connecting, Given};
use super::redirect::Hop;
use super::route::Route;
use super::stream::Stream;
use super::target::Target;
use super::{Inner, moment_in};
use aldaba_delivery::policy::Timeouts;
use aldaba_delivery::{AttemptFailure, FailureKind};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// How many shared connections one request may be given to, as long as it is certain that none of the
/// former has been processed.
const MOST_TRIES: usize = 3;

/// Where a request goes and by when.
pub(super) struct Delivery<'a> {
    pub(super) hop: &'a Hop,
    pub(super) target: &'a Target<'a>,
    pub(super) timeouts: Timeouts,
    /// It moves by what the request waited behind others of ours: that time is not the receiver's.
    pub(super) end: Instant,
    /// How long that was. It is at most as long as the policy's time to connect.
    pub(super) waited: Duration,
}

/// What was found or made for a request that would like HTTP/2.
enum Way {
    Shared(Slot),
    /// The receiver chose HTTP/1.1.
    Alone(Loan),
}

impl Delivery<'_> {
    fn connected_by(&self) -> Instant {
        self.end.min(moment_in(self.timeouts.connect))
    }

    fn answered_by(&self) -> Instant {
        self.end.min(moment_in(self.timeouts.answer))
    }

    /// Waits behind other requests, as long as the request would connect itself. `None`: for nothing.
    async fn behind_others<T>(&mut self, waiting: impl Future<Output = T>) -> Option<T> {
        let from = moment_in(Duration::ZERO);
        let by = from + self.timeouts.connect.saturating_sub(self.waited);
        let outcome = timeout_at(by, waiting).await;
        let waited = moment_in(Duration::ZERO).saturating_duration_since(from);
        self.waited += waited;
        self.end += waited;
        outcome.ok()
    }
}

impl Inner {
    pub(super) async fn deliver(
        &self,
        delivery: &mut Delivery<'_>,
        body: Bytes,
    ) -> Result<Exchanged, AttemptFailure> {
        let route = Route::of(delivery.hop, delivery.target);
        if route.http2 {
            return self.deliver_shared(delivery, body, &route).await;
        }
        if let Some(waiting) = self.pool.take(&route) {
            match self.over(waiting, delivery, body.clone(), &route).await {
                // The receiver closed it in the very moment and has seen nothing of the request.
                // This is the only case in which a second connection may carry it.
                Err(Interrupted { unsent: true, .. }) => {}
                Err(interrupted) => return Err(interrupted.failure),
                Ok(exchanged) => return Ok(exchanged),
            }
        }
        let fresh = self.pool.adopt(self.connect(delivery, false, delivery.connected_by()).await?);
        let exchanged = self.over(fresh, delivery, body, &route).await;
        exchanged.map_err(|interrupted| interrupted.failure)
    }

    async fn deliver_shared(
        &self,
        delivery: &mut Delivery<'_>,
        body: Bytes,
        route: &Route,
    ) -> Result<Exchanged, AttemptFailure> {
        let mut tries = 0;
        loop {
            tries += 1;
            let result = match self.way(delivery, route).await? {
                Way::Shared(slot) => self.along(&slot, delivery, body.clone()).await,
                Way::Alone(loan) => self.over(loan, delivery, body.clone(), route).await,
            };
            match result {
                Ok(exchanged) => return Ok(exchanged),
                Err(Interrupted { unsent: true, .. }) if tries < MOST_TRIES => {}
                Err(interrupted) => return Err(interrupted.failure),
            }
        }
    }

    /// A connection for a request that would like HTTP/2. As few as are needed connect, the others wait and
    /// share what they have made.
    async fn way(&self, delivery: &mut Delivery<'_>, route: &Route) -> Result<Way, AttemptFailure> {
        if let Some(slot) = self.lines.take(route) {
            return Ok(Way::Shared(slot));
        }
        if self.lines.speaks_http1(route) {
            return self.way_alone(delivery, route).await;
        }
        let mut joined = self.lines.join(route, delivery.timeouts.connect);
        match delivery.behind_others(&mut joined.given).await {
            Some(Ok(Given::Slot(slot))) => Ok(Way::Shared(slot)),
            Some(Ok(Given::Connect(connecting))) => self.way_for_many(delivery, route, connecting).await,
            Some(Ok(Given::Alone)) => self.way_alone(delivery, route).await,
            Some(Ok(Given::Failed(failure))) => Err(failure),
            // The receiver takes connections, and there were not enough of them: that is ours.
            None if self.lines.has_moved(route, &joined) => Err(late(Stage::Queued)),
            None => Err(connect::timed_out("connecting")),
            // Nobody throws away who waits.
            Some(Err(_)) => Err(late(Stage::Queued)),
        }
    }

    /// The receiver has chosen HTTP/1.1 before.
    async fn way_alone(&self, delivery: &Delivery<'_>, route: &Route) -> Result<Way, AttemptFailure> {
        if let Some(waiting) = self.pool.take(route) {
            return Ok(Way::Alone(waiting));
        }
        let by = delivery.connected_by();
        let stream = self.connect(delivery, true, by).await?;
        if !stream.is_http2() {
            return Ok(Way::Alone(self.pool.adopt(stream)));
        }
        // It has changed its mind: what has been made can be shared.
        let line = in_time(by, "the HTTP/2 handshake", Line::open(stream)).await?;
        Ok(Way::Shared(self.lines.add(route, None, line)))
    }

    /// Makes a connection for those who wait as well, and tells them if that failed.
    async fn way_for_many(
        &self,
        delivery: &Delivery<'_>,
        route: &Route,
        connecting: Connecting,
    ) -> Result<Way, AttemptFailure> {
        let now = moment_in(Duration::ZERO);
        let given = delivery.timeouts.connect.min(delivery.end.saturating_duration_since(now));
        let by = now + given;
        let made = async {
            let stream = self.connect(delivery, true, by).await?;
            if !stream.is_http2() {
                return Ok(Err(stream));
            }
            in_time(by, "the HTTP/2 handshake", Line::open(stream)).await.map(Ok)
        };
        match made.await {
            Ok(Ok(line)) => Ok(Way::Shared(self.lines.add(route, Some(connecting), line))),
            Ok(Err(stream)) => {
                self.lines.note_http1(route);
                // Those who wait need not wait any longer.
                drop(connecting);
                Ok(Way::Alone(self.pool.adopt(stream)))
            }
            Err(failure) => {
                connecting.failed(&failure, given);
                Err(failure)
            }
        }
    }

    async fn connect(
        &self,
        delivery: &Delivery<'_>,
        http2: bool,
        by: Instant,
    ) -> Result<Stream, AttemptFailure> {
        let identity = delivery.hop.identity.as_deref();
        let stream = self.connector.connect(delivery.target, http2, identity, by).await;
        if stream.as_ref().is_err_and(connect::is_shortage) {
            // The idle ones are ours to give.
            self.pool.clear();
            self.lines.clear();
        }
        stream
    }

    /// Over a connection that others use as well.
    async fn along(
        &self,
        slot: &Slot,
        delivery: &Delivery<'_>,
        body: Bytes,
    ) -> Result<Exchanged, Interrupted> {
        let stage = StageCell::default();
        let exchange = slot.line.exchange(delivery.hop.http2_head(body.len())?, body, &stage);
        match timeout_at(delivery.answered_by(), exchange).await {
            Ok(Ok(exchanged)) => Ok(exchanged),
            Ok(Err(interrupted)) => {
                if interrupted.unsent || interrupted.hostile || !slot.line.is_open() {
                    slot.retire();
                }
                Err(interrupted)
            }
            Err(_) => {
                // Perhaps the way to the receiver is dead: the next request finds out on a new one.
                slot.retire();
                Err(late(stage.get()).into())
            }
        }
    }

    /// Over a connection of its own.
    async fn over(
        &self,
        loan: Loan,
        delivery: &Delivery<'_>,
        body: Bytes,
        route: &Route,
    ) -> Result<Exchanged, Interrupted> {
        let Loan { stream, born } = loan;
        let progress = Arc::clone(stream.progress());
        let exchange = exchange(stream, delivery.hop.request(body)?);
        let mut exchanged = match timeout_at(delivery.answered_by(), exchange).await {
            Ok(exchanged) => exchanged?,
            Err(_) => return Err(late(progress.stage()).into()),
        };
        if let Some(stream) = exchanged.reusable.take() {
            self.pool.put_back(route.clone(), Loan { stream, born });
        }
        Ok(exchanged)
    }
}

fn late(stage: Stage) -> AttemptFailure {
    let kind = if stage == Stage::Queued { FailureKind::Unsent } else { FailureKind::Timeout };
    AttemptFailure { kind, detail: stage.late().into() }
}
