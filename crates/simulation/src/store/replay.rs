//! Replays reach the disk.

use super::SimStore;
use super::disk::{Disk, as_waiting};
use super::queue::Op;
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, ReplayId, Timestamp};
use aldaba_store::{
    Changed, DeliveryState, DeliveryStatus, Done, Error, Message, Order, Read, Replay, ReplayCount,
    ReplayState, ReplayStep, ReplayStepped, Replays, ReplaysQuery, Seq, Subscription, Waiting,
};

impl Disk {
    pub(super) fn start_replay(&mut self, replay: &Replay) -> Changed {
        if !self.has_room_for_replay(replay.app) {
            return Changed::TooMany;
        }
        self.replays.insert(replay.id, replay.clone());
        Changed::Done { removed: Vec::new() }
    }

    pub(super) fn has_room_for_replay(&self, app: AppId) -> bool {
        let running = |other: &&Replay| other.app == app && other.state == ReplayState::Running;
        self.replays.values().filter(running).count() < Replay::MOST_RUNNING
    }

    /// Starts a replay of what has died for its endpoint since an outage began, if anything has.
    pub(super) fn recover(&mut self, planned: &Replay, began: Timestamp) -> Option<Box<Replay>> {
        let died = |seq: &Seq| {
            let row = &self.deliveries[seq];
            let since = matches!(row.state, DeliveryState::Dead { at, .. } if at >= began);
            row.endpoint == planned.endpoint && since
        };
        if !self.dead_letter.iter().any(died) {
            return None;
        }
        let oldest = self.messages.values().find(|message| message.app == planned.app);
        let replay = planned.of_outage(began, oldest.map_or(began, |oldest| oldest.id.created_at()));
        self.start_replay(&replay);
        Some(Box::new(replay))
    }

    pub(super) fn cancel_replay(&mut self, org: OrgId, id: ReplayId, at: Timestamp) -> Changed {
        match self.replays.get_mut(&id).filter(|replay| replay.org == org) {
            None => Changed::NotFound,
            Some(replay) if replay.state != ReplayState::Running => Changed::Stale,
            Some(replay) => {
                (replay.state, replay.updated_at) = (ReplayState::Cancelled, at);
                Changed::Done { removed: Vec::new() }
            }
        }
    }

    pub(super) fn step_replay(&mut self, step: &ReplayStep) -> ReplayStepped {
        let Some(mut replay) = self.replays.get(&step.id).cloned() else {
            return ReplayStepped { replay: None, opened: Vec::new() };
        };
        let mut opened = Vec::new();
        if replay.state == ReplayState::Running {
            replay.updated_at = step.now;
            self.go_on(&mut replay, step, &mut opened);
            self.replays.insert(replay.id, replay.clone());
        }
        ReplayStepped { replay: Some(replay), opened }
    }

    fn go_on(&mut self, replay: &mut Replay, step: &ReplayStep, opened: &mut Vec<Waiting>) {
        if self.endpoints.get(&replay.endpoint).is_none_or(|endpoint| endpoint.deleted) {
            replay.state = ReplayState::EndpointGone;
            return;
        }
        let (messages, all) = self.next_of(replay, replay.reached, step.look);
        let most = step.most.saturating_sub(replay.opened).min(step.open as u64);
        let mut rest = false;
        for message in messages {
            replay.reached = Some(message.id);
            replay.looked_at += 1;
            if let Some(settled) = self.wanted(replay, &message) {
                let at = message.deliver_at.map_or(step.now, |later| later.max(step.now));
                opened.push(self.reopen(replay.endpoint, message.id, settled, (step.now, at)));
                if opened.len() as u64 >= most {
                    rest = true;
                    break;
                }
            }
        }
        replay.opened += opened.len() as u64;
        if all && !rest {
            replay.state = ReplayState::Finished;
        } else if replay.opened >= step.most {
            replay.state = ReplayState::TooMany;
        }
    }

    /// The messages that it looks at next, and whether those are all.
    fn next_of(&self, replay: &Replay, after: Option<MessageId>, look: usize) -> (Vec<Message>, bool) {
        let times = replay.filter.since..=replay.filter.until;
        let of_replay = |message: &&Message| {
            message.app == replay.app
                && after.is_none_or(|after| message.id > after)
                && times.contains(&message.created_at)
        };
        let mut messages: Vec<_> = self.messages.values().filter(of_replay).take(look + 1).cloned().collect();
        let all = messages.len() <= look;
        messages.truncate(look);
        (messages, all)
    }

    /// `Some` for a message that the replay is about, with its settled delivery if it has one.
    fn wanted(&self, replay: &Replay, message: &Message) -> Option<Option<Seq>> {
        let filter = &replay.filter;
        if !filter.wants(message.created_at, &message.content.event_type, &message.channels, &message.tags) {
            return None;
        }
        let endpoint = Subscription::from(self.endpoints.get(&replay.endpoint)?);
        if message.expunged {
            return None;
        }
        let missing = filter.missing && message.is_for(&endpoint) && endpoint.wants(&message.facts());
        let delivery = self.deliveries(message.id).into_iter().rfind(|row| row.endpoint == replay.endpoint);
        let Some(delivery) = delivery else {
            return missing.then_some(None);
        };
        if let DeliveryState::Skipped { .. } = delivery.state {
            return missing.then_some(Some(delivery.seq));
        }
        if endpoint.direct && !message.is_for(&endpoint) {
            return None;
        }
        let wanted = match delivery.state {
            DeliveryState::Waiting { .. } | DeliveryState::Skipped { .. } => false,
            DeliveryState::Delivered { .. } => filter.delivered,
            DeliveryState::Dead { at, reason } => {
                filter.wants_dead(at, reason, self.dead_letter.contains(&delivery.seq))
            }
        };
        let of_both = |attempt: &&aldaba_store::Attempt| {
            attempt.message == message.id && attempt.endpoint == replay.endpoint
        };
        let code = self.attempts.values().rfind(of_both).and_then(|attempt| attempt.status_code);
        (wanted && filter.wants_status(code)).then_some(Some(delivery.seq))
    }

    pub(super) fn reopen(
        &mut self,
        endpoint: EndpointId,
        message: MessageId,
        settled: Option<Seq>,
        (now, due_at): (Timestamp, Timestamp),
    ) -> Waiting {
        let rounds = self.of_message.entry(message).or_default();
        if let Some(settled) = settled {
            let row = self.deliveries.remove(&settled).expect("it was there a moment ago");
            self.archive.deliveries.insert(settled, row);
            self.dead_letter.remove(&settled);
            self.discarded.remove(&settled);
            rounds.retain(|seq| *seq != settled);
        }
        self.last_seq += 1;
        let seq = Seq(self.last_seq);
        let ordered =
            self.endpoints.get(&endpoint).is_some_and(|endpoint| endpoint.config.ordering.is_fifo());
        rounds.push(seq);
        let row = DeliveryStatus {
            seq,
            endpoint,
            message,
            attempts: 0,
            clock_start: due_at,
            replayed: true,
            retries: 0,
            place: (!ordered || due_at <= now).then_some(seq),
            state: DeliveryState::Waiting { due_at },
        };
        let waiting = as_waiting(&row).expect("it was just made to wait");
        self.deliveries.insert(seq, row);
        self.put_in_lane(endpoint, waiting);
        waiting
    }

    fn list_replays(&self, query: ReplaysQuery) -> Vec<Replay> {
        let wanted = |replay: &&Replay| {
            replay.org == query.org
                && query.ended.is_none_or(|end| end == replay.state.end())
                && query.kind.is_none_or(|kind| kind == replay.kind)
        };
        let rows = self.replays.values().filter(wanted);
        let limit = query.page.limit;
        match (query.order, query.page.after) {
            (Order::Ascending, after) => {
                rows.filter(|row| after.is_none_or(|after| row.id > after)).take(limit).cloned().collect()
            }
            (Order::Descending, after) => rows
                .rev()
                .filter(|row| after.is_none_or(|after| row.id < after))
                .take(limit)
                .cloned()
                .collect(),
        }
    }

    fn count_replay(&self, replay: &Replay, after: Option<MessageId>, look: usize) -> ReplayCount {
        let (messages, all) = self.next_of(replay, after, look);
        let wanted = |message: &&Message| self.wanted(replay, message).is_some();
        let matched = messages.iter().filter(wanted).count() as u64;
        ReplayCount {
            matched,
            rows: messages.len(),
            next: messages.last().filter(|_| !all).map(|message| message.id),
        }
    }
}

impl Replays for SimStore {
    fn step_replay(&self, step: ReplayStep, done: Done<ReplayStepped>) {
        if self.busy() {
            return done.call(Err(Error::Busy));
        }
        self.put(Op::StepReplay(step, done));
    }

    fn replay(&self, org: OrgId, id: ReplayId) -> Read<Option<Replay>> {
        self.read(move |disk| disk.replays.get(&id).filter(|replay| replay.org == org).cloned())
    }

    fn replays(&self, query: ReplaysQuery) -> Read<Vec<Replay>> {
        self.read(move |disk| disk.list_replays(query))
    }

    fn running_replays(&self) -> Read<Vec<Replay>> {
        let running = |replay: &&Replay| replay.state == ReplayState::Running;
        self.read(move |disk| disk.replays.values().filter(running).cloned().collect())
    }

    fn count_replay(&self, replay: Replay, after: Option<MessageId>, look: usize) -> Read<ReplayCount> {
        self.read(move |disk| disk.count_replay(&replay, after, look))
    }
}
