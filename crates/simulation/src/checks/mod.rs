//! What must hold after a run: the disk, the wire and the client's notes tell one story.

mod audit;
mod clocks;
mod counters;
pub mod erasing;
mod expunging;
mod gates;
mod health;
mod manual;
mod operators;
mod ordering;
mod organizations;
mod pace;
mod promise;
mod retention;
mod sources;
mod stop_dates;
mod story;
mod trouble;
mod wire;

use crate::client::Notes;
use crate::log::{Life, LifeEnd, Log, Resend, Said};
use crate::world::World;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use story::Stories;

/// Something that must not be.
#[derive(Clone, Debug)]
pub struct Violation {
    /// The invariant, by its name.
    pub check: &'static str,
    pub text: String,
}

/// How much a run was: what it had of everything, by name.
#[derive(Clone, Debug, Default)]
pub struct Volume(pub BTreeMap<&'static str, u64>);

impl AddAssign for Volume {
    fn add_assign(&mut self, other: Self) {
        other.0.into_iter().for_each(|(name, count)| *self.0.entry(name).or_default() += count);
    }
}

/// Runs every check.
pub fn verdict(world: &World) -> Vec<Violation> {
    let (disk, whole, notes) = (world.disk.lock().everything(), world.log.lock(), world.notes.lock());
    let mut found = Findings::default();
    audit::every_change_has_its_row(&disk, &whole, &mut found);
    counters::every_attempt_and_end_is_counted(&disk, &whole, &mut found);
    counters::hours_are_their_minutes(&disk, &mut found);
    counters::what_waits_is_counted(&disk, &mut found);
    counters::quotas_have_what_was_accepted(&disk, &whole, &mut found);
    organizations::minutes_have_what_happened(&world.scenario, &disk, &whole, &mut found);
    organizations::hours_are_their_minutes(&disk, &mut found);
    let manual = manual::requests(&disk, &whole);
    manual::attempts_are_on_disk(&disk, &whole, &mut found);
    manual::nothing_goes_out_beside_them(&whole, &manual, &mut found);
    manual::only_endpoints_that_are_on_get_them(&whole, &manual, &mut found);
    expunging::deleted_payloads_stay_here(&whole, &mut found);
    let inlets = sources::inlets(&world.scenario, &disk, &whole);
    sources::taken_is_on_disk(&inlets, &mut found);
    sources::each_event_is_once(&disk, &inlets, &mut found);
    sources::a_repeat_opens_what_has_failed(&inlets, &mut found);
    sources::only_what_is_taken_is_stored(&inlets, &whole, &mut found);
    sources::what_goes_out_is_what_came_in(&disk, &inlets, &whole, &mut found);
    sources::answers_fit(&disk, &inlets, &notes, &mut found);
    // From here on what the schedule has made.
    let log = manual::without(&whole, &manual);
    let stories = Stories::tell(&world.scenario, &disk, &log, &manual, &mut found);
    promise::accepted_is_kept(&disk, &notes, &mut found);
    promise::fan_out_is_exact(&disk, &log, &mut found);
    promise::everything_ends(&world.scenario, &stories, &notes, &mut found);
    stop_dates::nothing_waits_past_its_stop_date(&world.scenario, &stories, &log, &mut found);
    promise::cancelled_means_ended(&stories, &notes, &mut found);
    promise::history_is_whole(&disk, &stories, &mut found);
    promise::nothing_is_accepted_twice(&disk, &log, &notes, &mut found);
    wire::nothing_leaves_after_the_end(&stories, &mut found);
    wire::requests_are_limited(&stories, &log, &mut found);
    wire::attempts_are_requests(&stories, &log, &mut found);
    wire::delivered_means_arrived(&stories, &mut found);
    wire::everything_is_signed(&log, &mut found);
    pace::retries_come_when_due(&stories, &log, &mut found);
    pace::what_is_due_goes_out(&world.scenario, &stories, &log, &mut found);
    pace::lanes_keep_their_width(&world.scenario, &log, &mut found);
    pace::throttles_hold(&world.scenario, &log, &mut found);
    pace::receivers_are_left_alone_when_they_ask(&stories, &log, &mut found);
    ordering::nothing_overtakes(&stories, &log, &mut found);
    ordering::what_blocks_stops(&stories, &log, &mut found);
    ordering::nothing_leaves_before_its_time(&disk, &stories, &mut found);
    trouble::nothing_is_sent_while_nothing_can_be_written(&log, &mut found);
    trouble::deleted_endpoints_are_left_alone(&disk, &log, &mut found);
    operators::nothing_is_sent_while_it_must_not_be(&disk, &log, &mut found);
    operators::only_what_is_off_is_skipped(&stories, &log, &mut found);
    gates::gates_hold(&world.scenario, &disk, &log, &mut found);
    gates::gates_keep_to_their_organization(&disk, &log, &mut found);
    health::health_is_what_the_attempts_made_it(&disk, &stories, &log, &mut found);
    retention::nothing_goes_before_its_time(&world.scenario, &stories, &log, &mut found);
    retention::what_is_over_is_gone(&world.scenario, &disk, &stories, &log, &mut found);
    found.nothing_unexpected(&log, &notes);
    found.0
}

/// The checks of a run in which the machine's clock is set: those that look at no clock, and those that are about it.
pub fn clock_verdict(world: &World) -> Vec<Violation> {
    let (disk, whole, notes) = (world.disk.lock().everything(), world.log.lock(), world.notes.lock());
    let mut found = Findings::default();
    let manual = manual::requests(&disk, &whole);
    let log = manual::without(&whole, &manual);
    let stories = Stories::tell(&world.scenario, &disk, &log, &manual, &mut found);
    promise::accepted_is_kept(&disk, &notes, &mut found);
    promise::fan_out_is_exact(&disk, &log, &mut found);
    promise::everything_ends(&world.scenario, &stories, &notes, &mut found);
    promise::history_is_whole(&disk, &stories, &mut found);
    promise::nothing_is_accepted_twice(&disk, &log, &notes, &mut found);
    wire::nothing_leaves_after_the_end(&stories, &mut found);
    trouble::deleted_endpoints_are_left_alone(&disk, &log, &mut found);
    counters::every_attempt_and_end_is_counted(&disk, &whole, &mut found);
    counters::what_waits_is_counted(&disk, &mut found);
    organizations::minutes_have_what_happened(&world.scenario, &disk, &whole, &mut found);
    clocks::nothing_is_removed(&log, &mut found);
    clocks::nothing_ends_by_time(&stories, &mut found);
    clocks::nothing_waits_for_a_clock(&stories, &log, &mut found);
    found.add_all("due", &notes.due_faults);
    found.add_all("tokens", &notes.token_faults);
    found.nothing_unexpected(&log, &notes);
    found.0
}

pub fn volume(world: &World) -> Volume {
    let (disk, log) = (world.disk.lock().everything(), world.log.lock());
    let ended = log.lives.last().map_or(world.scenario.start, |life| life.ended);
    let heard = |is_so: fn(Said) -> bool| {
        log.inbound.iter().filter(|request| request.heard.is_some_and(|heard| is_so(heard.said))).count()
            as u64
    };
    let made_manually = |resend: &&Resend| resend.answered.is_some_and(|(_, made)| made);
    Volume(BTreeMap::from([
        ("simulated seconds", ended.since(world.scenario.start).as_secs()),
        ("lives", log.lives.len() as u64),
        ("messages", disk.messages.len() as u64),
        ("deliveries", disk.deliveries.len() as u64),
        ("requests", log.requests.len() as u64),
        ("replayed", log.rounds.len() as u64),
        ("manual", log.resends.iter().filter(made_manually).count() as u64),
        ("manual of what waited", log.records.iter().filter(|record| record.is_manual()).count() as u64),
        ("inbound", log.inbound.len() as u64),
        ("received", heard(|said| matches!(said, Said::New(_)))),
        ("duplicates", heard(|said| matches!(said, Said::Duplicate(_)))),
        ("reopened", heard(|said| matches!(said, Said::Reopened(_)))),
        ("conflicts", heard(|said| matches!(said, Said::OtherBody(_)))),
        ("not verified", heard(|said| said == Said::NotVerified)),
        // Commits of one application that were heard of before earlier ones of another.
        ("overtakings", log.overtakings),
    ]))
}

#[derive(Default)]
struct Findings(Vec<Violation>);

impl Findings {
    /// One bug may break a thousand deliveries; a few reports suffice.
    const MAX_PER_CHECK: usize = 5;

    fn add(&mut self, check: &'static str, text: impl FnOnce() -> String) {
        if self.0.iter().filter(|violation| violation.check == check).count() < Self::MAX_PER_CHECK {
            self.0.push(Violation { check, text: text() });
        }
    }

    fn add_all(&mut self, check: &'static str, texts: &[String]) {
        texts.iter().for_each(|text| self.add(check, || text.clone()));
    }

    fn nothing_unexpected(&mut self, log: &Log, notes: &Notes) {
        self.add_all("store", &log.failures);
        self.add_all("answers", &notes.surprises);
        if matches!(log.lives.last(), Some(Life { end: LifeEnd::TimedOut, .. })) {
            self.add("I1", || "the run did not settle in time".into());
        }
    }

    fn require(&mut self, holds: bool, check: &'static str, text: impl FnOnce() -> String) {
        if !holds {
            self.add(check, text);
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.check, self.text)
    }
}
