//! I9 and the schedules: when requests may leave, and how many at once.

use super::Findings;
use super::operators::releases;
use super::ordering::{Orderings, by_endpoint};
use super::story::{Stories, Story};
use crate::log::{Fate, Log, Request};
use crate::scenario::Scenario;
use aldaba_delivery::{
    AttemptFailure, Chance, Class, Delivery, EndpointId, Outcome, ResponseHead, RetryAfter, Timestamp,
    Transition,
};
use aldaba_store::{NewAttempt, Recorded};
use std::collections::BTreeMap;
use std::time::Duration;

/// An attempt that has had its turn may still have to read its payload, and such a read may be slow
/// and fail a few times before the request leaves.
pub(super) const SLOW_READ: Duration = Duration::from_secs(20);

/// Every retry waits for the moment that was written down, and that moment is one that the policy
/// allows.
pub(super) fn retries_come_when_due(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    for story in stories.iter() {
        let mut attempts = 0;
        for record in story.records.iter().filter(|record| record.result == Recorded::Applied) {
            attempts += u32::from(record.attempt.is_some());
            let (Transition::Retry { due_at }, Some(attempt)) = (record.transition, &record.attempt) else {
                continue;
            };
            let request = story.requests.iter().find(|request| request.at == attempt.started_at);
            let retry_after = request.and_then(|request| request.retry_after());
            let class = Class::of(&story.policy, &outcome(attempt, retry_after));
            let allowed = |clock_start: Timestamp| {
                let delivery = Delivery { attempts, clock_start };
                let due = |chance| {
                    Transition::after_attempt(&story.policy, &delivery, &class, record.decided_at, chance)
                };
                match (due(Chance::LOWEST), due(Chance::HIGHEST)) {
                    (Transition::Retry { due_at: first }, Transition::Retry { due_at: last }) => {
                        first <= due_at && due_at <= last
                    }
                    // Past its stop date with the longest delay, before it with a shorter one.
                    (
                        Transition::Retry { due_at: first },
                        Transition::Settle(_) | Transition::Stop { .. },
                    ) => first <= due_at,
                    _ => false,
                }
            };
            // The clock starts anew where something was let go.
            let releases = releases(log, record.endpoint).filter(|at| *at <= record.decided_at);
            let allowed = releases.chain([story.delivery.clock_start]).any(allowed);
            found.require(allowed, "schedule", || {
                format!("{story}: after attempt {attempts} at {:?} due at {due_at:?}", record.decided_at)
            });
            let next = story.requests.iter().find(|request| request.step > record.step);
            found.require(next.is_none_or(|next| next.at >= due_at), "schedule", || {
                format!("{story}: due at {due_at:?}, and a request left at {:?}", next.map(|next| next.at))
            });
        }
    }
}

/// Once nothing fails any more, what is due goes out soon: a delivery that a lane has lost sight of
/// would show here. What may still hold it back are a hold or a wish from before, and for the
/// endpoints that were given up the time until their next probe.
pub(super) fn what_is_due_goes_out(
    scenario: &Scenario,
    stories: &Stories<'_>,
    log: &Log,
    found: &mut Findings,
) {
    let Some(life) = log.lives.last() else {
        return;
    };
    let calm = scenario.faults_end.max(life.began);
    let orderings = Orderings::of(log);
    let lanes = by_endpoint(stories);
    for story in stories.iter() {
        let soon = match story.policy.probe {
            Some(probe) => probe.longest_gap + probe.first_gap,
            None => Duration::from_secs(3 * 3600),
        };
        for request in story.requests.iter().filter(|request| request.at > calm) {
            let records = story.records.iter().take_while(|record| record.step < request.step);
            let due_at = records.filter_map(|record| match record.transition {
                Transition::Retry { due_at } => Some(due_at),
                Transition::Settle(_) | Transition::Stop { .. } => None,
            });
            let due_at = due_at.last().unwrap_or(story.delivery.clock_start);
            let free = free_in_order(story, request, &lanes, &orderings);
            let due_at = due_at.max(free.unwrap_or(due_at));
            let let_go = releases(log, story.delivery.endpoint).filter(|at| *at <= request.at).max();
            let due_at = let_go.map_or(due_at, |at| at.max(due_at));
            found.require(request.at <= due_at.max(calm) + soon, "late", || {
                format!("{story}: due at {due_at:?}, calm since {calm:?}, and sent at {:?}", request.at)
            });
        }
    }
}

/// In order a delivery also waits for all before it, and where one of them blocks, for the owner.
fn free_in_order(
    story: &Story<'_>,
    request: &Request,
    lanes: &BTreeMap<EndpointId, Vec<&Story<'_>>>,
    orderings: &Orderings<'_>,
) -> Option<Timestamp> {
    let endpoint = story.endpoint.id;
    if !orderings.ever_fifo(endpoint) {
        return None;
    }
    let earlier = lanes[&endpoint].iter().take_while(|one| one.delivery.seq < story.delivery.seq);
    let ends = earlier.flat_map(|one| &one.records).filter(|record| record.step < request.step);
    ends.map(|record| record.at).chain(orderings.changed_before(endpoint, request.step)).max()
}

/// What the engine was told of an attempt.
pub(super) fn outcome(attempt: &NewAttempt, retry_after: Option<Duration>) -> Outcome {
    let retry_after = retry_after.map(|wish| RetryAfter::Seconds(wish.as_secs()));
    match (attempt.status_code, attempt.failure) {
        (Some(status), _) => Outcome::Response(ResponseHead { status, phrase: "".into(), retry_after }),
        (None, Some(kind)) => Outcome::Failed(AttemptFailure { kind, detail: "".into() }),
        (None, None) => unreachable!("an attempt is answered or has failed"),
    }
}

/// Requests in their order, by something that they have in common.
fn grouped<K: Ord>(log: &Log, key: impl Fn(&Request) -> K) -> BTreeMap<K, Vec<&Request>> {
    let mut groups: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for request in &log.requests {
        groups.entry(key(request)).or_default().push(request);
    }
    groups
}

/// By life and door.
fn by_lane(log: &Log) -> BTreeMap<(usize, usize), Vec<&Request>> {
    grouped(log, |request| (request.life, request.door))
}

pub(super) fn lanes_keep_their_width(scenario: &Scenario, log: &Log, found: &mut Findings) {
    let most = scenario.options.lane_most;
    for ((life, door), requests) in by_lane(log) {
        let at_once = most_at_once(&requests);
        found.require(at_once <= most, "I9", || {
            format!("{at_once} requests at once to door {door} in life {life}; {most} are allowed")
        });
    }
    let org = |request: &Request| scenario.org_of(scenario.doors[request.door].tenant);
    let origins = grouped(log, |request| (request.life, org(request), scenario.origin(request.door)));
    for ((life, _, origin), requests) in origins {
        let (at_once, most) = (most_at_once(&requests), scenario.options.requests_per_origin);
        found.require(at_once <= most, "origin", || {
            format!("{at_once} requests at once to {origin:?} in life {life}; {most} are allowed")
        });
    }
    for life in 0..log.lives.len() {
        let requests: Vec<_> = log.requests.iter().filter(|request| request.life == life).collect();
        let (at_once, most) = (most_at_once(&requests), scenario.options.in_flight);
        found.require(at_once <= most, "I9", || {
            format!("{at_once} requests at once in life {life}; {most} are allowed")
        });
    }
}

fn most_at_once(requests: &[&Request]) -> usize {
    let mut edges: Vec<(u64, bool)> = Vec::with_capacity(requests.len() * 2);
    for request in requests {
        edges.push((request.step, true));
        edges.extend(request.end.map(|end| (end.step, false)));
    }
    edges.sort_unstable();
    let (mut now, mut most) = (0_usize, 0);
    for (_, starts) in edges {
        now = if starts { now + 1 } else { now.saturating_sub(1) };
        most = most.max(now);
    }
    most
}

pub(super) fn throttles_hold(scenario: &Scenario, log: &Log, found: &mut Findings) {
    const WINDOW: Duration = Duration::from_secs(20);
    /// Requests that were held up by slow reads may leave together.
    const TOGETHER: Duration = Duration::from_secs(6);
    let lanes = by_lane(log).into_iter().map(|((life, door), requests)| {
        (scenario.doors[door].throttle_rate, format!("door {door} in life {life}"), requests)
    });
    // Manual attempts are beside the lanes, and have no rate.
    let tenants = grouped(log, |request| (request.life, scenario.doors[request.door].tenant));
    let tenants = tenants.into_iter().map(|((life, tenant), requests)| {
        (scenario.rate_of(tenant), format!("tenant {tenant} in life {life}"), requests)
    });
    for (rate, whose, requests) in lanes.chain(tenants) {
        let Some(rate) = rate else {
            continue;
        };
        let most = usize::from(rate) * usize::try_from((WINDOW + TOGETHER).as_secs()).unwrap_or(0) + 1;
        let mut first = 0;
        for (index, request) in requests.iter().enumerate() {
            while requests[first].at + WINDOW < request.at {
                first += 1;
            }
            let count = index - first + 1;
            found.require(count <= most, "I9", || {
                format!("{count} requests within {WINDOW:?} to {whose}, at {rate} a second")
            });
        }
    }
}

/// `Retry-After` binds the whole endpoint, once the answer that asked for it is on disk.
pub(super) fn receivers_are_left_alone_when_they_ask(stories: &Stories<'_>, log: &Log, found: &mut Findings) {
    let by_door = grouped(log, |request| request.door);
    for story in stories.iter() {
        for request in &story.requests {
            let (Some(end), Some(wish)) = (request.end, request.retry_after()) else {
                continue;
            };
            let Fate::Answered { status, .. } = end.fate else {
                continue;
            };
            let rule = &story.policy.retry_after;
            if !rule.statuses.contains(status) || story.attempt_of(request).is_none() {
                continue;
            }
            let quiet = wish.max(rule.shortest).min(rule.longest);
            let until: Timestamp = end.at + quiet;
            for early in &by_door[&request.door] {
                let early_enough = early.at <= end.at + SLOW_READ || early.at >= until;
                found.require(early_enough, "I9", || {
                    format!(
                        "door {} asked at {:?} for {quiet:?} without requests, and got one at {:?}",
                        request.door, end.at, early.at
                    )
                });
            }
        }
    }
}
