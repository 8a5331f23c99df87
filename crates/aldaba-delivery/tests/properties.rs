//! What holds for every policy and every outcome.

mod arbitrary;
mod walk;

use aldaba_delivery::policy::{
    Jitter, MAX_ATTEMPTS, MAX_GATE_HOLD, MAX_RETRY_AFTER, RetryAfterUse, Schedule,
};
use aldaba_delivery::{
    Availability, Class, Delivery, Ending, GateAdmission, Policy, Reason, RetryAfter, Timestamp, Transition,
    Verdict,
};
use arbitrary::*;
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use walk::{START, answer, walk_by_chance};

proptest! {
    #[test]
    fn formatted_durations_parse_back(millis in 0..u64::MAX / 2) {
        let span = Duration::from_millis(millis);
        prop_assert_eq!(aldaba_delivery::parse_duration(&aldaba_delivery::format_duration(span)), Some(span));
    }

    #[test]
    fn exponential_delays_never_shrink_and_end_at_the_cap(
        base in 1..10_000_000_u64, factor in 1..=u32::MAX, more in 0..10_000_000_u64,
    ) {
        let (base, cap) = (Duration::from_millis(base), Duration::from_millis(base + more));
        let schedule = Schedule::Exponential { base, factor, cap };
        let delays: Vec<_> = (1..100).chain([10_000, u32::MAX]).map(|n| schedule.delay(n)).collect();
        prop_assert_eq!(delays[0], base);
        prop_assert!(delays.is_sorted());
        let end = if factor == 1 { base } else { cap };
        prop_assert_eq!(delays.last(), Some(&end));
    }

    #[test]
    fn a_listed_schedule_repeats_its_last_delay(delays in vec(duration(), 1..8), past in any::<u32>()) {
        let schedule = Schedule::List(delays.clone());
        for (n, delay) in (1..).zip(&delays) {
            prop_assert_eq!(schedule.delay(n), *delay);
        }
        let past = past.max(u32::try_from(delays.len()).unwrap());
        prop_assert_eq!(schedule.delay(past), *delays.last().unwrap());
    }

    #[test]
    fn jitter_stays_within_its_bounds(
        millis in 0..=2_592_000_000_u64, most in 0..=2_592_000_000_u64, share in 0..=100_u8, chance in chance(),
    ) {
        let delay = Duration::from_millis(millis);
        let jittered = |jitter: Jitter| u64::try_from(jitter.apply(delay, chance).as_millis()).unwrap();
        let spread = millis * u64::from(share) / 100;
        prop_assert_eq!(jittered(Jitter::None), millis);
        let add = jittered(Jitter::AddUpTo(Duration::from_millis(most)));
        prop_assert!((millis..=millis + most).contains(&add));
        prop_assert!((millis..=millis + spread).contains(&jittered(Jitter::AddPercent(share))));
        let around = jittered(Jitter::AroundPercent(share));
        prop_assert!((millis - spread..=millis + spread).contains(&around));
        prop_assert!((0..=millis).contains(&jittered(Jitter::Full)));
    }

    #[test]
    fn any_schedule_and_jitter_can_be_asked_whether_valid_or_not(
        schedule in schedule(duration().boxed()), jitter in jitter(duration()), n: u32, chance in chance(),
    ) {
        prop_assert!(schedule.delay(n) <= schedule.longest());
        let _ = jitter.apply(schedule.delay(n), chance);
    }

    #[test]
    fn any_policy_is_judged_without_a_panic(spec in spec()) {
        if let Err(error) = Policy::new(spec) {
            prop_assert!(!error.field.is_empty() && !error.why.is_empty());
        }
    }

    #[test]
    fn one_field_from_anywhere_in_a_valid_policy_is_judged_and_then_lived_with(
        valid in valid_spec(), other in spec(), field in 0..11_usize, outcome in outcome(), attempts: u32,
        moments in [timestamp(), timestamp()], chance in chance(),
    ) {
        let mut spec = valid;
        match field {
            0 => spec.schedule = other.schedule,
            1 => spec.jitter = other.jitter,
            2 => spec.limit = other.limit,
            3 => spec.timeouts = other.timeouts,
            4 => spec.success = other.success,
            5 => spec.rejects = other.rejects,
            6 => spec.redirects = other.redirects,
            7 => spec.retry_after = other.retry_after,
            8 => spec.gate = other.gate,
            9 => spec.endpoint_fails = other.endpoint_fails,
            _ => spec.probe = other.probe,
        }
        if let Ok(policy) = Policy::new(spec) {
            let delivery = Delivery { attempts, clock_start: moments[0] };
            let class = Class::of(&policy, &outcome);
            let transition = Transition::after_attempt(&policy, &delivery, &class, moments[1], chance);
            if let Transition::Retry { due_at } = transition {
                prop_assert!(due_at >= moments[1], "a retry lies in the past");
                prop_assert!(policy.limit.attempts.is_none_or(|most| attempts < most), "one attempt too many");
                prop_assert!(delivery.stop_at(&policy).is_none_or(|stop| due_at <= stop), "past the stop date");
            }
        }
    }

    #[test]
    fn no_attempt_comes_after_the_stop_date_or_above_the_limit(
        spec in valid_spec(), chances in vec(chance(), 1..20), outcomes in vec(outcome(), 1..20),
    ) {
        let policy = Policy::new(spec).unwrap();
        let nth = |n: u32, length: usize| usize::try_from(n).unwrap() % length;
        let walk = walk_by_chance(
            &policy,
            |n| chances[nth(n, chances.len())],
            |n, _| outcomes[nth(n, outcomes.len())].clone(),
        );
        let limit = policy.limit.attempts.unwrap_or(MAX_ATTEMPTS);
        prop_assert!(walk.attempts.len() <= usize::try_from(limit).unwrap());
        prop_assert!(walk.attempts.is_sorted());
        if let Some(stop) = policy.limit.stop_after {
            prop_assert!(walk.attempts.iter().all(|at| *at <= stop));
        }
        if walk.ending == Ending::Dead(Reason::Exhausted) {
            prop_assert_eq!(walk.attempts.len(), usize::try_from(limit).unwrap());
        }
    }

    #[test]
    fn a_retry_is_never_due_before_now_or_after_the_stop_date(
        spec in valid_spec(), outcome in outcome(), attempts: u32,
        moments in [timestamp(), timestamp()], chance in chance(),
    ) {
        let policy = Policy::new(spec).unwrap();
        let [clock_start, now] = moments;
        let delivery = Delivery { attempts, clock_start };
        let class = Class::of(&policy, &outcome);
        if let Transition::Retry { due_at } =
            Transition::after_attempt(&policy, &delivery, &class, now, chance)
        {
            prop_assert!(due_at >= now);
            prop_assert!(delivery.stop_at(&policy).is_none_or(|stop| due_at <= stop));
            prop_assert!(!delivery.overdue(&policy, due_at));
        }
    }

    #[test]
    fn a_receivers_wish_moves_a_retry_within_the_policys_bounds_only(
        spec in valid_spec(), headers in vec(header(), 0..3), millis in 0..2_000_000_000_000_i64, chance in chance(),
    ) {
        let policy = Policy::new(spec).unwrap();
        let now = Timestamp::from_millis(millis);
        let delivery = Delivery { attempts: 1, clock_start: now };
        let wish = RetryAfter::parse(headers.iter().map(Vec::as_slice));
        let due = |outcome| {
            let class = Class::of(&policy, &outcome);
            match Transition::after_attempt(&policy, &delivery, &class, now, chance) {
                Transition::Retry { due_at } => Some(due_at.since(now)),
                Transition::Settle(_) | Transition::Stop { .. } => None,
            }
        };
        let planned = due(answer(429));
        let Some(wish) = wish else { return Ok(()) };
        let rule = &policy.retry_after;
        match (planned, due(walk::answer_with(429, wish)), rule.use_) {
            (_, Some(granted), RetryAfterUse::Replace) => {
                prop_assert!((rule.shortest..=rule.longest).contains(&granted));
            }
            (Some(planned), Some(granted), RetryAfterUse::Lengthen) => {
                prop_assert!((planned..=planned.max(rule.longest)).contains(&granted));
            }
            _ => {}
        }
    }

    #[test]
    fn no_header_makes_the_parser_panic_and_a_missing_header_asks_for_nothing(headers in vec(header(), 0..4), now in timestamp()) {
        match RetryAfter::parse(headers.iter().map(Vec::as_slice)) {
            Some(wish) => {
                prop_assert!(!headers.is_empty());
                // All headers say the same, and none of them lies in the past of the clock.
                prop_assert!(headers.iter().all(|header| RetryAfter::parse([header.as_slice()]) == Some(wish)));
                prop_assert!(now + wish.delay(now) >= now);
            }
            None => prop_assert!(
                headers.len() != 1 || RetryAfter::parse([headers[0].as_slice(), &headers[0]]).is_none()
            ),
        }
    }

    #[test]
    fn a_date_that_was_written_as_http_asks_is_read_as_it_was_meant(seconds in 0..253_402_300_799_u64) {
        let text = httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(seconds));
        let at = Timestamp::from_millis(i64::try_from(seconds * 1000).unwrap());
        prop_assert_eq!(RetryAfter::parse([text.as_bytes()]), Some(RetryAfter::At(at)));
    }

    #[test]
    fn health_stays_valid_after_any_sequence_of_events(
        spec in valid_spec(), before in health(), outcome in outcome(), attempts: u32,
        moments in [timestamp(), timestamp()], chance in chance(),
    ) {
        let policy = Policy::new(spec).unwrap();
        let [clock_start, now] = moments;
        let class = Class::of(&policy, &outcome);
        let delivery = Delivery { attempts, clock_start };
        let transition = Transition::after_attempt(&policy, &delivery, &class, now, chance);
        let after = before.after_attempt(&policy, &class, &transition, now);
        let _ = before.availability(now);
        if class.verdict == Verdict::Delivered {
            prop_assert_eq!(after.failure_count, 0);
        }
        if !class.concerns_receiver() {
            prop_assert_eq!((after.status, after.failure_count), (before.status, before.failure_count));
        }
        prop_assert!(after.changed_at == before.changed_at || after.changed_at == Some(now));
        let believed = before.quiet_until.filter(|until| *until > now && *until <= now + MAX_RETRY_AFTER);
        prop_assert!(after.quiet_until >= believed);
        prop_assert!(after.quiet_until <= Some(now + MAX_RETRY_AFTER));
        let wish = after.quiet_until.map_or(Availability::Open, |until| Availability::Held(Some(until)));
        prop_assert_eq!(after.resumed(now).availability(now), wish);
    }

    #[test]
    fn any_gate_opens_again_within_the_longest_hold(
        spec in valid_spec(), before in gate(), scope in scope(), outcome in outcome(), probe: bool, attempts: u32,
        moments in [timestamp(), timestamp()], chance in chance(),
    ) {
        let policy = Policy::new(spec).unwrap();
        let [clock_start, now] = moments;
        let class = Class::of(&policy, &outcome);
        let delivery = Delivery { attempts, clock_start };
        let transition = Transition::after_attempt(&policy, &delivery, &class, now, chance);
        let after = before.after_attempt(scope, &policy, &class, &transition, probe, now);
        prop_assert!(after.held_until <= before.held_until.max(Some(now + MAX_GATE_HOLD)));
        prop_assert!(!probe || after.admission(&policy, Timestamp::MAX) != GateAdmission::Probing);
        if let GateAdmission::Held(until) = after.admission(&policy, now) {
            prop_assert!(until <= now + policy.longest_hold());
        }
        if class.verdict == Verdict::Delivered && policy.uses_gate(scope) {
            prop_assert!(after.is_clear());
        }
        if !policy.uses_gate(scope) {
            prop_assert_eq!((after.held_until, after.failures), (before.held_until, before.failures));
        }
    }

    #[test]
    fn time_never_wraps(a in timestamp(), b in timestamp(), span in duration()) {
        prop_assert!(a + span >= a);
        let (earlier, later) = (a.min(b), a.max(b));
        prop_assert_eq!(earlier.since(later), Duration::ZERO);
        if START >= earlier && later >= START {
            prop_assert!(later.since(earlier) >= later.since(START));
        }
    }
}

/// Header values from plain bytes to near misses of what is allowed.
fn header() -> impl Strategy<Value = Vec<u8>> {
    let date = "(Mon|Sun|Xxx), [0-9]{2} (Jan|Feb|Nov|Abc) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT";
    let old_date = "(Monday|Sunday), [0-9]{2}-(Jan|Feb|Nov)-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT";
    prop_oneof![
        vec(any::<u8>(), 0..40),
        "[0-9]{0,30}".prop_map(String::into_bytes),
        "[-+ 0-9.eE]{0,12}".prop_map(String::into_bytes),
        date.prop_map(String::into_bytes),
        old_date.prop_map(String::into_bytes),
        (0..253_402_300_799_u64).prop_map(|seconds| {
            httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(seconds)).into_bytes()
        }),
    ]
}
