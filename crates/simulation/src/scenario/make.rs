use super::{Door, EventPlan, LifePlan, Order, PlannedEnd, Scenario, What};
use crate::entropy::Dice;
use crate::receiver::{Mood, Spell};
use crate::store::{CrashPoint, Faults, Span, Stage};
use aldaba_delivery::policy::{BUILTIN_NAMES, Overrides, RetentionDefaults};
use aldaba_delivery::{Ordering, OrgId, Timestamp};
use aldaba_engine::{Options, Quotas, RetentionOptions};
use aldaba_signature::SigningKey;
use std::time::Duration;

/// 2026-01-01.
const START: Timestamp = Timestamp::from_millis(1_767_225_600_000);
/// Nothing fails while the tenants are set up.
const SETUP: Duration = Duration::from_secs(60);
/// The slowest policies wait 12 hours for the next attempt or probe, and a receiver may ask for a
/// few hours more.
const TO_SETTLE: Duration = hours(48);
/// As long as the server lets a sender wait for the store.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(8);
pub const EVENT_TYPES: [&str; 3] = ["invoice.paid", "invoice.void", "user.left"];
/// More than any run sends: what is counted for them is the point.
const QUOTAS: Quotas = Quotas { organization: Some(1_000_000), application: Some(1_000_000) };
const CHANNELS: [&str; 2] = ["north", "south"];
/// What every fourth endpoint wants.
pub(super) const FILTER: &str =
    r#"{"any": [{"payload": "$.event", "lt": 20}, {"payload": "$.padding", "eq": ""}]}"#;

const fn hours(hours: u64) -> Duration {
    Duration::from_secs(hours * 3600)
}

pub(super) fn scenario(seed: u64) -> Scenario {
    let mut dice = Dice::of(seed, "scenario");
    // Mostly hours; sometimes so long that an endpoint without success is given up.
    let length = dice.pick(&[hours(1), hours(1), hours(4), hours(12), hours(30), hours(72), hours(150)]);
    let faults_end = START + SETUP + length;
    let tenants = usize::try_from(dice.between(1, 4)).unwrap_or(1);
    let host_count = usize::try_from(dice.between(1, 4)).unwrap_or(1);
    let mut doors: Vec<_> =
        (0..dice.between(1, 12)).map(|_| door(&mut dice, tenants, host_count, length)).collect();
    // Without the dice, so that all else is as it was before there were filters.
    doors.iter_mut().skip(2).step_by(4).for_each(|door| door.filter = Some(FILTER));
    let hosts: Vec<_> = (0..host_count).map(|_| host_moods(&mut dice, length)).collect();
    let lives = lives(&mut dice, length, doors.len() + tenants);
    let faults = Faults {
        panicking_reads: Dice::of(seed, "panics").pick(&[0, 0, 0, 20]),
        panicking_writes: 0,
        ..faults(&mut dice, Span { from: START + SETUP, to: faults_end }, length)
    };
    let moods = doors.iter().map(|door| &door.moods).chain(&hosts).flatten().map(|spell| &spell.span);
    let turning_points: Vec<_> = moods.chain(&faults.full).flat_map(|span| [span.from, span.to]).collect();
    let orders = orders(&mut dice, &doors, tenants, length, &turning_points);
    Scenario {
        seed,
        start: START,
        faults_end,
        limit: faults_end + TO_SETTLE,
        org: OrgId::new(START, [7; 15]),
        tenants,
        options: Options {
            retention: retention(seed),
            quotas: Dice::of(seed, "quotas").pick(&[QUOTAS, Quotas::default()]),
            requests_per_origin: Dice::of(seed, "origins").pick(&[1, 2, 8, 128, 128]),
            ..options(&mut dice, length)
        },
        overrides: Overrides {
            stop_after: dice.pick(&[hours(168), hours(168), hours(12), hours(2)]),
            ..Overrides::default()
        },
        faults,
        doors,
        sources: Vec::new(),
        hosts,
        orders,
        clock_steps: Vec::new(),
        lives,
        sabotage: None,
    }
}

pub(super) fn door(dice: &mut Dice, tenants: usize, hosts: usize, length: Duration) -> Door {
    let mut listed = |names: &[&str]| -> Vec<String> {
        if dice.percent(75) { Vec::new() } else { vec![dice.pick(names).to_owned()] }
    };
    let (event_types, channels) = (listed(&EVENT_TYPES), listed(&CHANNELS));
    let policy = dice.pick(&BUILTIN_NAMES);
    let mut secret = [0; 32];
    secret.fill_with(|| dice.throw().to_le_bytes()[0]);
    let key = if dice.percent(20) {
        SigningKey::generate_ed25519(secret)
    } else {
        SigningKey::generate_hmac(std::array::from_fn(|n| secret[n]))
    };
    Door {
        tenant: dice.index(tenants),
        host: dice.index(hosts),
        policy,
        profile: dice.percent(20).then_some("svix"),
        event_types,
        channels,
        filter: None,
        throttle_rate: dice.percent(25).then(|| dice.pick(&[1, 2, 5, 20])),
        ordering: Ordering::None,
        key,
        moods: (0..dice.between(0, 5)).map(|_| spell(dice, length)).collect(),
        late: dice.percent(20),
        holds: false,
    }
}

fn spell(dice: &mut Dice, length: Duration) -> Spell {
    // Once a receiver is gone it stays so: rare, or little would be left to watch.
    let gone = dice.percent(3);
    let wish = Duration::from_secs(dice.pick(&[1, 5, 60, 600, 7200]));
    let mood = dice.pick(&[
        Mood::Slow,
        Mood::Flaky,
        Mood::Flaky,
        Mood::Answers(500),
        Mood::Answers(204),
        Mood::Answers(400),
        Mood::Answers(302),
        Mood::TooMany(wish),
        Mood::Unavailable(wish),
        Mood::Silent,
        Mood::Breaks,
        Mood::Panics,
    ]);
    Spell { span: part_of(dice, length), mood: if gone { Mood::Answers(410) } else { mood } }
}

fn host_moods(dice: &mut Dice, length: Duration) -> Vec<Spell> {
    let mood = |dice: &mut Dice| dice.pick(&[Mood::Refuses, Mood::Unresolved]);
    (0..dice.between(0, 2)).map(|_| Spell { span: part_of(dice, length), mood: mood(dice) }).collect()
}

/// Seldom nearly all of it, mostly a small part.
fn part_of(dice: &mut Dice, length: Duration) -> Span {
    let share = u32::try_from(dice.pick(&[1_u64, 2, 10, 10, 50])).unwrap_or(1);
    let span = dice.span(Duration::from_secs(1), length / share);
    let from = START + SETUP + dice.span(Duration::ZERO, length.saturating_sub(span));
    Span { from, to: from + span }
}

/// Events come in bursts, half of them where something else changes; so do changes of endpoints.
fn orders(
    dice: &mut Dice,
    doors: &[Door],
    tenants: usize,
    length: Duration,
    turning_points: &[Timestamp],
) -> Vec<Order> {
    let mut orders = Vec::new();
    let mut bursts = turning_points.to_vec();
    let most = dice.pick(&[50, 100, 150, 250, 400]);
    while orders.len() < most {
        // Together, or over up to ten minutes.
        let burst = dice.pick(&[1, 1, 3, 10, 30, 60]);
        let spread = dice.pick(&[0, 200, 5000, 600_000]);
        let at = if dice.percent(50) && !turning_points.is_empty() {
            dice.pick(turning_points)
        } else {
            START + SETUP + dice.span(Duration::ZERO, length)
        };
        bursts.push(at);
        for _ in 0..burst {
            let event = event(dice, orders.len(), tenants);
            orders.push(Order { at: at + dice.millis(0, spread), what: What::Send(event) });
        }
    }
    for (number, door) in doors.iter().enumerate() {
        let made_at = if door.late { dice.pick(&bursts) } else { START + SETUP };
        if door.late {
            orders.push(Order { at: made_at, what: What::CreateEndpoint { door: number } });
        }
        if dice.percent(25) {
            let at = dice.pick(&bursts).max(made_at) + dice.millis(0, 5000);
            orders.push(Order { at, what: What::DeleteEndpoint { door: number } });
        }
    }
    orders
}

fn event(dice: &mut Dice, number: usize, tenants: usize) -> EventPlan {
    let channels = match dice.between(0, 3) {
        0 => vec![dice.pick(&CHANNELS).to_owned()],
        1 => CHANNELS.map(str::to_owned).to_vec(),
        _ => Vec::new(),
    };
    EventPlan {
        number,
        tenant: dice.index(tenants),
        event_type: dice.pick(&EVENT_TYPES),
        channels,
        has_event_id: dice.percent(30),
        has_key: dice.percent(50),
        twice: dice.percent(10),
        again: dice.percent(10),
        deliver_at: None,
        payload_kept: None,
        padding: dice.index(200),
        address: None,
    }
}

fn lives(dice: &mut Dice, length: Duration, setup_commits: usize) -> Vec<LifePlan> {
    let count = dice.pick(&[0_u64, 0, 1, 2, 3, 5]);
    let share = length / u32::try_from(count + 1).unwrap_or(1);
    let life = |dice: &mut Dice| {
        let longest_downtime = dice.pick(&[Duration::from_secs(60), hours(3)]);
        LifePlan {
            length: SETUP + dice.span(Duration::from_secs(1), share * 2),
            end: if dice.percent(30) {
                PlannedEnd::Stop { limit: dice.millis(0, 40_000) }
            } else {
                PlannedEnd::Kill
            },
            crash: dice.percent(50).then(|| CrashPoint {
                commit: setup_commits as u64 + 2 + dice.between(1, 200),
                stage: dice.pick(&[Stage::BeforeCommit, Stage::BeforeDone, Stage::AmongDones]),
            }),
            downtime: dice.span(Duration::from_millis(10), longest_downtime),
        }
    };
    (0..count).map(|_| life(dice)).collect()
}

fn options(dice: &mut Dice, length: Duration) -> Options {
    let lane_start = dice.pick(&[1, 2, 8]);
    Options {
        // It reads what nobody in a simulation asks for, every few seconds of weeks.
        store_watch_interval: None,
        in_flight: dice.pick(&[8, 8, 16, 64, 4096]),
        lane_start,
        lane_most: lane_start.max(dice.pick(&[1, 2, 4, 16])),
        lane_buffer: dice.pick(&[1, 4, 4, 8, 32, 256]),
        lane_bytes: dice.pick(&[0, 400, 16 << 20]),
        lanes_awake: dice.pick(&[0, 1, 3, 10_000]),
        content_bytes: dice.pick(&[0, 2000, 20_000, 64 << 20]),
        // A sweep finds what a lane has lost; without one such a loss can be seen.
        sweep_interval: dice.pick(&[(length / 500).max(Duration::from_secs(30)), hours(1000)]),
        lane_idle: Duration::from_secs(dice.pick(&[1, 60, 3600])),
        // Nobody sets the clock here, and idle time must cost nothing.
        max_sleep: hours(24 * 365),
        // A life that is killed forgets so much of the time that it has run.
        clock_record_interval: hours(1),
        tenants: dice.pick(&[1, 10_000]),
        commit_timeout: Some(COMMIT_TIMEOUT),
        ..Options::default()
    }
}

/// From dice of its own. Half of the runs are without, as most servers are most of the time.
fn retention(seed: u64) -> RetentionOptions {
    let mut dice = Dice::of(seed, "retention");
    let span = |dice: &mut Dice| dice.pick(&[None, Some(hours(1)), Some(hours(6)), Some(hours(30))]);
    RetentionOptions {
        defaults: RetentionDefaults { delivered: span(&mut dice), dead: span(&mut dice) },
        interval: dice.pick(&[hours(24 * 365), hours(24 * 365), hours(2), hours(1) / 6]),
        ..RetentionOptions::default()
    }
}

fn faults(dice: &mut Dice, active: Span, length: Duration) -> Faults {
    // A few long ones, or many short ones.
    let (count, longest) = dice.pick(&[(0, 1), (0, 1), (1, 1800), (2, 600), (30, 5)]);
    let full = (0..count).map(|_| {
        let from = active.from + dice.span(Duration::ZERO, length);
        let to = (from + dice.span(Duration::from_millis(100), Duration::from_secs(longest))).min(active.to);
        Span { from, to }
    });
    Faults {
        active,
        full: full.collect(),
        slow_commits: dice.pick(&[0, 1, 10]),
        busy: dice.pick(&[0, 2, 20]),
        slow_reads: dice.pick(&[0, 5, 40]),
        failing_reads: dice.pick(&[0, 2, 10]),
        panicking_reads: 0,
        panicking_writes: 0,
        crash: None,
        sabotage: None,
    }
}
