//! Each delivery with everything that is known of it, from all sides.

use super::Findings;
use crate::log::{Log, RecordCommit, Request, Step};
use crate::scenario::{Scenario, door_number};
use aldaba_delivery::{EndpointId, MessageId, Policy};
use aldaba_store::operations::everything::Everything;
use aldaba_store::{Attempt, DeliveryStatus, Endpoint, Seq};
use std::collections::BTreeMap;
use std::fmt;

pub(super) struct Story<'a> {
    pub(super) delivery: &'a DeliveryStatus,
    pub(super) endpoint: &'a Endpoint,
    pub(super) policy: Policy,
    /// In the order in which they left.
    pub(super) requests: Vec<&'a Request>,
    /// Those that somebody has made manually, in whatever round.
    pub(super) manual: Vec<&'a Request>,
    /// In the order of their commits.
    pub(super) records: Vec<&'a RecordCommit>,
    pub(super) attempts: Vec<&'a Attempt>,
}

pub(super) struct Stories<'a>(pub(super) BTreeMap<Seq, Story<'a>>);

impl<'a> Stories<'a> {
    pub(super) fn tell(
        scenario: &Scenario,
        disk: &'a Everything,
        log: &'a Log,
        manual: &[&'a Request],
        found: &mut Findings,
    ) -> Self {
        let policies = scenario.policies();
        let endpoints: BTreeMap<EndpointId, &Endpoint> =
            disk.endpoints.values().map(|row| (row.id, row)).collect();
        let by_door: BTreeMap<usize, EndpointId> =
            disk.endpoints.values().filter_map(|row| Some((door_number(&row.config.url)?, row.id))).collect();
        // The rounds of a message with an endpoint, by when each began.
        let mut rounds: BTreeMap<(MessageId, EndpointId), BTreeMap<Step, Seq>> = BTreeMap::new();
        let mut stories = BTreeMap::new();
        for delivery in disk.deliveries.iter() {
            let Some(&endpoint) = endpoints.get(&delivery.endpoint) else {
                found.add("I1", || format!("{:?} goes to an endpoint that has no row", delivery.seq));
                continue;
            };
            let policy = policies.builtin(&endpoint.config.policy).expect("a built-in policy");
            let policy = if endpoint.direct { policy.without_owner() } else { policy.clone() };
            let begins = log.rounds.get(&delivery.seq).copied().unwrap_or_default();
            rounds.entry((delivery.message, delivery.endpoint)).or_default().insert(begins, delivery.seq);
            let door = door_number(&endpoint.config.url);
            let of_this =
                |request: &&&Request| Some(request.door) == door && request.message == delivery.message;
            let manual = manual.iter().filter(of_this).copied().collect();
            let (requests, records, attempts) = (Vec::new(), Vec::new(), Vec::new());
            let story = Story { delivery, endpoint, policy, requests, manual, records, attempts };
            stories.insert(delivery.seq, story);
        }
        for request in &log.requests {
            let rounds = by_door.get(&request.door).and_then(|id| rounds.get(&(request.message, *id)));
            let seq = rounds.and_then(|rounds| rounds.range(..=request.step).next_back()).map(|(_, seq)| seq);
            match seq.and_then(|seq| stories.get_mut(seq)) {
                Some(story) => story.requests.push(request),
                None => found.add("I1", || {
                    format!("{} went to door {}, and no delivery is on disk", request.message, request.door)
                }),
            }
        }
        for record in &log.records {
            if let Some(story) = stories.get_mut(&record.seq) {
                story.records.push(record);
            }
        }
        for attempt in disk.attempts.iter().filter(|attempt| attempt.trigger.counts()) {
            if let Some(story) = stories.get_mut(&attempt.seq) {
                story.attempts.push(attempt);
            }
        }
        Self(stories)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Story<'a>> {
        self.0.values()
    }
}

impl Story<'_> {
    /// Requests that were never recorded.
    pub(super) fn unrecorded(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().copied().filter(|request| self.attempt_of(request).is_none())
    }

    pub(super) fn attempt_of(&self, request: &Request) -> Option<&Attempt> {
        self.attempts.iter().copied().find(|attempt| attempt.started_at == request.at)
    }

    pub(super) fn request_of(&self, attempt: &Attempt) -> Option<&Request> {
        self.requests.iter().copied().find(|request| request.at == attempt.started_at)
    }
}

/// The delivery by its names.
impl fmt::Display for Story<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { delivery, endpoint, .. } = self;
        write!(
            f,
            "{:?} ({} to {}, {})",
            delivery.seq, delivery.message, endpoint.config.url, endpoint.config.policy
        )
    }
}
