//! The checks can fail: each planted bug is caught, by the check that is meant for it.

use simulation::checks::{clock_verdict, verdict};
use simulation::run::play;
use simulation::sabotage::Sabotage;
use simulation::scenario::Scenario;
use std::collections::BTreeSet;

/// A bug that shows only now and then needs a few seeds.
const SEEDS: u64 = 40;

/// Some seed is caught by `check`.
fn is_caught_by(sabotage: Sabotage, check: &str) {
    let mut others = BTreeSet::new();
    for seed in 0..SEEDS {
        let world = play(Scenario::new(seed).sabotaged(sabotage), false);
        let violations = verdict(&world);
        if violations.iter().any(|violation| violation.check == check) {
            return;
        }
        others.extend(violations.iter().map(|violation| violation.check));
    }
    panic!("{SEEDS} seeds with {sabotage:?}, and {check} has not caught it; others have: {others:?}");
}

/// The same, of runs in which the machine's clock is set.
fn is_caught_on_a_wrong_clock_by(sabotage: Sabotage, check: &str) {
    let mut others = BTreeSet::new();
    for seed in 0..SEEDS {
        let world = play(Scenario::with_clock_steps(seed).sabotaged(sabotage), false);
        let violations = clock_verdict(&world);
        if violations.iter().any(|violation| violation.check == check) {
            return;
        }
        others.extend(violations.iter().map(|violation| violation.check));
    }
    panic!("{SEEDS} seeds with {sabotage:?}, and {check} has not caught it; others have: {others:?}");
}

macro_rules! planted_on_a_wrong_clock {
    ($($name:ident: $sabotage:ident by $check:literal;)*) => {$(
        #[test]
        fn $name() {
            is_caught_on_a_wrong_clock_by(Sabotage::$sabotage, $check);
        }
    )*};
}

planted_on_a_wrong_clock! {
    a_clock_that_is_believed_at_every_start_is_caught: ForgetClock by "clock";
    keys_that_expire_by_a_wrong_clock_are_caught: ExpireKeys by "I2";
    due_times_that_are_left_in_the_future_are_caught: HideNotDue by "waits";
    retries_that_are_corrected_to_too_late_a_moment_are_caught: CorrectLate by "due";
    a_manual_attempt_that_restores_a_wrong_due_time_is_caught: RestoreDue by "due";
    tokens_that_a_clock_brings_back_are_caught: DelayCuts by "tokens";
    forgotten_revocations_are_caught: ForgetRevocations by "tokens";
}

macro_rules! planted {
    ($($name:ident: $sabotage:ident by $check:literal;)*) => {$(
        #[test]
        fn $name() {
            is_caught_by(Sabotage::$sabotage, $check);
        }
    )*};
}

planted! {
    an_answer_before_the_commit_is_caught: AckBeforeCommit by "I1";
    a_lost_record_is_caught: LoseRecord by "I5";
    a_lost_manual_attempt_is_caught: LoseManual by "manual";
    a_torn_commit_is_caught: TearCommit by "I1";
    a_forgotten_key_is_caught: ForgetKeys by "I2";
    a_stale_fan_out_is_caught: AcceptStale by "I1";
    a_request_after_the_end_is_caught: RaiseTheDead by "I3";
    a_hidden_row_is_caught: HideRow by "I1";
    a_hidden_stop_date_is_caught: HideStopDates by "stop date";
    a_lost_due_time_is_caught: ForgetDue by "schedule";
    a_second_request_is_caught: SendTwice by "I5";
    a_retry_inside_the_transport_is_caught: RetryInside by "I4";
    a_changed_body_is_caught: ChangeBody by "signature";
    an_ignored_retry_after_is_caught: HideRetryAfter by "I9";
    an_ignored_throttle_is_caught: HideThrottle by "I9";
    too_many_requests_at_once_are_caught: WidenLanes by "I9";
    too_many_requests_at_once_to_one_origin_are_caught: WidenOrigins by "origin";
    sending_while_nothing_can_be_written_is_caught: HideRefusal by "I6";
    a_request_to_a_deleted_endpoint_is_caught: HideDelete by "deleted";
    a_request_to_an_endpoint_that_is_off_is_caught: HideDisabled by "held";
    a_forgotten_gate_is_caught: ForgetGates by "gate";
    a_hold_of_another_organization_is_caught: MixOrganizations by "tenancy";
    a_hidden_ordering_is_caught: HideOrdering by "I8";
    a_hidden_block_is_caught: HideBlock by "I8";
    a_message_for_later_that_jumps_the_queue_is_caught: JumpQueue by "I8";
    a_forgotten_delay_is_caught: ForgetDelay by "deliverAt";
    a_removal_before_its_time_is_caught: RemoveEarly by "retention";
    a_payload_that_is_removed_while_something_waits_is_caught: RemovePayloads by "I1";
    a_deleted_payload_that_is_sent_is_caught: KeepDeleted by "expunge";
    a_pretended_success_is_caught: PretendSuccess by "I1";
    a_store_that_answers_a_source_before_the_commit_is_caught: AckBeforeCommit by "taken";
    a_door_that_answers_before_the_commit_is_caught: AnswerFirst by "taken";
    a_look_at_event_ids_before_the_commit_is_caught: LookThenStore by "once";
    forgotten_event_ids_of_a_source_are_caught: ForgetKeys by "once";
    event_ids_that_are_forgotten_before_their_time_are_caught: ForgetWindow by "once";
    a_received_body_that_is_stored_otherwise_is_caught: TidyBody by "taken";
    headers_of_another_event_are_caught: MixHeaders by "bytes";
    a_door_that_takes_forged_events_is_caught: TakeForged by "refused";
    a_hidden_conflict_is_caught: HideConflict by "answer";
    a_failed_event_that_a_repeat_does_not_open_is_caught: ForgetFailed by "reopened";
    a_forgotten_condition_of_an_update_is_caught: ForgetCondition by "health";
    a_row_that_is_skipped_at_a_cursor_is_caught: SkipAtCursor by "I1";
    news_of_an_application_out_of_order_is_caught: MixNews by "I5";
    attempts_that_are_not_counted_are_caught: LoseCounts by "counters";
    lost_counts_of_quotas_are_caught: LoseQuotas by "quotas";
    lost_counts_of_organizations_are_caught: LoseOrganizationCounts by "organizations";
}
