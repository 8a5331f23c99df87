//! The suite that every backend passes.
//!
//! A case is a claim about a [`Store`] that is empty and its own. It knows nothing of the backend:
//! no file, no clock, no sleep. A backend's test file gets one test for each case:
//!
//! ```ignore
//! fn run(case: aldaba_store::conformance::Case) {
//!     // Make an empty store, drive `case(store)` to its end.
//! }
//! aldaba_store::conformance_tests!(tests run);
//! ```

pub mod accepting;
mod configuration;
mod delivering;
pub mod endings;
pub mod expunging;
pub mod notices;
pub mod order;
pub mod quotas;
mod reading;
mod replaying;
pub mod retention;
mod scene;

pub use configuration::{
    applications, audit, credentials, deleting, endpoints, event_types, policies, profiles, secrets,
    settings, sources,
};
pub use delivering::{by_hand, due_times, health, lanes, ordering, recording, stop_dates};
pub use reading::{deliveries, dispatching, history, lists, organizations, statistics};
pub use replaying::{recoveries, replay_filters, replays};
pub use retention::{find, remove_slice};
pub use scene::{Scene, at};

use crate::Store;
use std::pin::Pin;
use std::sync::Arc;

/// One claim. It panics where the store does not keep it.
pub type Case = fn(Arc<dyn Store>) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// All cases with their names, for those who run them in a loop.
pub const CASES: &[(&str, Case)] = crate::conformance_tests!(cases);

/// `conformance_tests!(tests run)` makes one `#[test]` of each case, given a `fn run(Case)`.
#[macro_export]
macro_rules! conformance_tests {
    ($what:ident $($run:path)?) => {
        $crate::conformance_tests! { @$what [$($run)?]
            accepting::an_event_is_stored_as_it_was_given,
            accepting::deliveries_get_numbers_without_a_gap_in_their_order,
            accepting::the_clock_of_a_delivery_starts_when_it_may_first_go_out,
            accepting::an_event_without_endpoints_is_stored,
            accepting::a_repeated_idempotency_key_stores_nothing_and_names_the_first_message,
            accepting::a_key_used_twice_in_one_batch_counts_once,
            accepting::an_idempotency_key_counts_even_when_the_version_is_stale,
            accepting::an_accepted_key_is_found_in_the_order_of_the_writes,
            accepting::a_key_that_was_kept_under_its_former_digest_is_honoured,
            accepting::an_idempotency_key_counts_until_its_row_is_removed,
            accepting::idempotency_keys_of_two_applications_do_not_meet,
            accepting::a_taken_event_id_stores_nothing_and_names_its_message,
            accepting::a_refused_event_leaves_its_idempotency_key_free,
            accepting::a_stale_version_stores_nothing,
            accepting::an_unknown_or_deleted_application_is_stale,
            accepting::one_conflict_never_fails_its_neighbours,
            accepting::the_same_message_twice_is_stored_once,
            accepting::a_large_payload_comes_back_whole,
            dispatching::an_address_is_made_once_and_is_on_no_list,
            dispatching::an_address_names_a_policy_and_a_profile_that_are_there,
            dispatching::what_was_dispatched_is_found_by_its_state,
            dispatching::a_job_is_found_by_its_id_with_the_newest_first,
            dispatching::what_is_dispatched_again_stays_a_dispatch,
            dispatching::what_is_sent_elsewhere_by_hand_changes_no_record,
            dispatching::a_list_says_that_it_goes_on_where_it_had_to_pass_over_many,
            dispatching::what_waits_of_it_is_among_what_waits,
            dispatching::an_address_goes_when_nothing_refers_to_it,
            dispatching::expunging_takes_the_headers_too,
            sources::a_source_comes_back_as_it_was_given_with_its_application,
            sources::a_taken_uid_makes_neither_source_nor_application,
            sources::an_organization_has_so_many_sources_and_no_more,
            sources::a_source_is_replaced_only_by_who_has_read_it,
            sources::a_source_is_found_by_each_of_its_tokens,
            sources::the_application_of_a_source_goes_with_it_and_not_without_it,
            sources::sources_are_listed_both_ways_for_their_organization,
            sources::a_repeated_request_makes_and_rotates_nothing,
            sources::a_payload_is_compared_as_long_as_it_is_kept,
            sources::an_event_is_processed_when_every_endpoint_has_it,
            sources::an_event_has_failed_when_one_is_dead_and_none_waits,
            sources::an_event_that_is_replayed_is_processed_in_the_end,
            sources::a_repeat_opens_what_has_failed_of_an_event_and_nothing_else,
            sources::what_somebody_has_ended_is_not_opened_by_a_repeat,
            sources::an_event_whose_endpoints_are_deleted_goes_to_those_that_want_it_now,
            sources::an_event_without_endpoints_or_with_those_that_are_off_is_processed,
            sources::events_are_found_by_their_states_page_by_page,
            quotas::an_application_sends_so_many_messages_a_day_and_no_more,
            quotas::an_organization_sends_so_many_messages_a_day_and_no_more,
            quotas::an_application_is_made_with_its_first_message_or_not_at_all,
            quotas::a_new_day_begins_with_none,
            quotas::what_is_not_stored_is_not_counted,
            recording::a_delivered_message_is_settled_with_its_attempt,
            recording::a_retry_moves_the_delivery_and_counts_the_attempt,
            recording::the_attempt_that_has_delivered_is_known_and_no_retry_is_planned_by_it,
            recording::an_ending_without_an_attempt_counts_none,
            recording::every_reason_comes_back,
            recording::every_kind_of_failure_comes_back,
            recording::a_late_record_is_fenced,
            recording::a_fenced_record_writes_nothing,
            recording::a_settled_delivery_is_fenced,
            recording::one_fenced_record_never_fails_its_neighbours,
            recording::a_delivery_that_never_was_is_fenced,
            recording::health_is_kept_with_the_endpoint,
            recording::gates_are_kept_until_they_are_clear,
            recording::each_organization_has_its_own_gate_of_a_host,
            order::a_read_after_done_sees_the_write,
            order::done_calls_come_in_commit_order,
            order::news_of_a_row_come_before_news_of_its_next_change,
            order::every_write_is_answered_once,
            lanes::due_is_ordered_by_turn_and_starts_after_the_cursor,
            lanes::due_names_only_its_own_endpoint,
            lanes::a_retry_changes_the_turn,
            lanes::settled_deliveries_leave_due_and_lanes,
            lanes::lanes_names_each_endpoint_once_a_page_and_resumes,
            lanes::lanes_stops_at_its_horizon,
            lanes::equal_due_times_are_walked_by_number,
            lanes::contents_come_in_the_order_asked_for,
            lanes::waiting_counts_what_is_not_settled,
            stop_dates::what_has_started_before_is_found_tried_or_not,
            stop_dates::endpoints_are_named_for_which_something_has_started_before,
            stop_dates::a_replay_marks_what_it_opens,
            ordering::an_ordered_read_goes_by_number_and_starts_after_one,
            ordering::what_waits_is_put_in_order_when_the_endpoint_becomes_ordered,
            ordering::a_message_for_later_takes_its_place_behind_all_others_when_it_is_due,
            ordering::what_is_for_later_is_left_outside_when_the_endpoint_becomes_ordered,
            ordering::an_endpoint_for_which_too_many_wait_cannot_become_ordered,
            ordering::a_block_ends_with_the_ordering_that_asked_for_it,
            policies::a_policy_comes_back_as_it_was_given,
            policies::a_policy_in_use_stays,
            policies::what_a_deleted_application_has_left_names_no_policy,
            profiles::a_profile_comes_back_as_it_was_given,
            profiles::a_profile_in_use_stays,
            event_types::an_event_type_comes_back_as_it_was_given,
            event_types::only_who_has_read_it_changes_it,
            event_types::all_of_a_change_is_written_or_nothing,
            event_types::a_repeated_change_writes_nothing_and_names_the_first,
            event_types::two_organizations_have_event_types_of_one_name,
            applications::an_application_is_found_by_id_and_by_uid,
            applications::another_organization_finds_nothing,
            applications::a_taken_uid_changes_nothing,
            applications::a_uid_can_be_used_again_after_a_delete,
            applications::an_application_is_replaced_only_by_who_has_read_it,
            applications::a_repeated_creation_changes_nothing_and_names_the_first,
            applications::a_creation_that_was_kept_under_its_former_digest_is_honoured,
            applications::every_change_raises_the_version,
            applications::lists_run_both_ways_page_by_page,
            endpoints::an_endpoint_comes_back_as_it_was_given,
            endpoints::an_endpoint_needs_its_application,
            endpoints::an_update_changes_the_configuration_and_nothing_else,
            endpoints::an_update_of_something_else_changes_nothing,
            deleting::a_deleted_endpoint_is_found_by_lanes_only,
            deleting::a_deleted_application_takes_its_endpoints_along,
            deleting::what_waits_of_a_deleted_application_is_found_endpoint_by_endpoint,
            deleting::deleting_twice_finds_nothing,
            settings::the_first_setting_stays,
            settings::a_setting_that_is_put_takes_the_place_of_the_one_before,
            due_times::what_is_not_due_is_walked_by_turn_with_what_bounds_it,
            due_times::a_corrected_due_time_moves_the_turn_unless_the_delivery_has_changed,
            due_times::a_retry_is_read_with_when_it_was_last_tried,
            due_times::a_failed_attempt_by_hand_leaves_a_due_time_that_was_corrected_meanwhile,
            due_times::the_newest_moment_is_that_of_the_last_row,
            credentials::a_key_comes_back_as_it_was_given,
            credentials::a_key_made_twice_by_one_request_is_made_once,
            credentials::a_key_for_an_application_needs_it,
            credentials::an_organization_has_so_many_keys_and_no_more,
            credentials::the_keys_of_an_application_go_with_it,
            credentials::only_its_organization_renames_and_revokes_a_key,
            credentials::the_last_use_of_a_key_never_moves_back,
            credentials::a_revoked_token_is_kept_until_it_would_have_ended,
            credentials::a_cut_of_portal_tokens_takes_the_place_of_those_it_covers,
            audit::a_change_and_its_row_are_made_together,
            audit::every_actor_and_action_comes_back_as_it_was_given,
            audit::discarded_deliveries_are_counted_in_one_row,
            audit::records_that_share_an_entry_leave_one_row,
            audit::the_log_is_filtered,
            audit::the_log_is_filtered_by_what_was_changed,
            audit::an_entry_has_the_values_that_its_change_has_found_and_left,
            audit::the_log_is_listed_both_ways_page_by_page,
            audit::a_filter_of_the_log_that_finds_little_gives_up_and_can_go_on,
            audit::old_rows_of_the_log_go_the_oldest_first,
            secrets::secrets_are_replaced_only_by_who_has_read_them,
            secrets::a_repeated_replacement_of_secrets_changes_nothing,
            secrets::secrets_of_what_is_not_there_are_not_replaced,
            notices::a_notice_is_kept_with_what_it_tells_of,
            notices::a_notice_of_a_refused_change_is_not_kept,
            notices::forgotten_notices_are_gone_and_their_numbers_stay_theirs,
            notices::each_organization_has_its_own_notices,
            notices::so_many_notices_wait_and_one_says_how_many_were_left_out,
            health::a_change_of_condition_is_noted_once_with_its_cause,
            health::only_the_newest_changes_are_kept,
            health::changes_are_listed_both_ways_page_by_page,
            health::the_newest_error_is_kept_with_the_endpoint,
            health::a_resume_makes_active_and_says_since_when_it_had_failed,
            health::a_resume_says_when_the_outage_began_whatever_came_late,
            health::a_resume_of_a_healthy_endpoint_changes_nothing,
            health::an_endpoint_that_is_turned_off_is_not_resumed,
            health::an_attempt_from_before_a_resume_leaves_the_health_alone,
            health::turning_off_and_on_is_a_change_by_hand,
            health::a_skipped_delivery_is_settled_from_the_beginning,
            health::released_gates_are_gone,
            health::endpoints_are_found_by_where_their_urls_begin,
            history::a_message_is_found_by_id_and_by_event_id,
            history::messages_are_listed_both_ways_page_by_page,
            history::attempts_are_listed_both_ways_page_by_page,
            history::deliveries_of_a_message_come_in_order_with_their_states,
            lists::messages_are_filtered_by_type_channel_and_tag,
            lists::messages_are_listed_between_two_moments,
            lists::a_walk_over_messages_is_given_up_and_can_go_on,
            lists::a_page_of_messages_ends_with_its_bytes_and_comes_without_payloads_if_wanted,
            lists::attempts_are_filtered_by_result_status_message_and_time,
            lists::a_walk_over_attempts_is_given_up_and_can_go_on,
            lists::one_attempt_is_found_with_its_message_only,
            lists::attempts_of_a_message_are_filtered_by_endpoint,
            lists::messages_of_an_endpoint_come_once_with_how_far_they_have_come,
            expunging::an_expunged_payload_is_gone_and_its_message_stays,
            expunging::an_expunged_response_is_gone_and_its_attempt_stays,
            expunging::a_replay_passes_over_what_has_no_payload,
            organizations::each_attempt_and_each_end_is_counted_once_for_its_organization,
            organizations::manual_attempts_and_duplicates_of_sources_are_counted,
            organizations::what_waits_is_counted_for_each_organization,
            organizations::endpoints_that_are_given_up_are_counted_by_organization,
            organizations::the_oldest_waiting_delivery_is_found_tried_or_not,
            organizations::the_dead_letter_is_counted_by_reason,
            organizations::rows_of_organizations_are_read_by_minute_and_hour,
            statistics::attempts_of_an_endpoint_are_counted_by_result_and_minute,
            statistics::attempts_by_hand_are_counted_too,
            statistics::hours_that_are_summed_up_count_the_same,
            statistics::what_is_counted_late_is_in_the_sum_too,
            statistics::attempts_of_an_application_are_counted_by_event_type_and_hour,
            statistics::hours_that_are_summed_up_go_with_or_before_their_minutes,
            replays::a_replay_opens_what_it_asks_for_and_leaves_what_waits,
            recoveries::what_was_cancelled_or_discarded_is_not_recovered,
            recoveries::a_resume_recovers_what_has_died_since_the_outage_began,
            recoveries::a_resume_whose_recovery_cannot_be_started_changes_nothing,
            recoveries::a_resume_recovers_nothing_where_nothing_has_died,
            recoveries::a_repeated_resume_names_the_recovery_of_the_first,
            replays::what_is_to_be_delivered_later_still_is,
            replays::what_is_to_be_delivered_later_is_opened_outside_of_the_order,
            replays::a_round_without_an_attempt_has_the_last_answer_of_the_one_before,
            replays::another_round_takes_the_place_of_the_settled_one,
            replays::a_replay_goes_on_where_it_was_and_opens_nothing_twice,
            replays::a_replay_ends_at_the_most_that_one_may_open,
            replay_filters::a_filter_looks_at_time_type_channel_tag_and_status,
            replay_filters::what_an_endpoint_does_not_want_is_not_missing,
            replay_filters::what_the_filter_of_an_endpoint_keeps_back_is_not_missing,
            replay_filters::what_was_for_another_endpoint_is_not_missing,
            replays::a_replay_ends_with_its_endpoint_and_when_it_is_cancelled,
            by_hand::an_attempt_by_hand_settles_with_success_and_else_changes_nothing,
            by_hand::an_attempt_by_hand_uses_up_none_of_those_of_the_policy,
            by_hand::the_key_of_an_attempt_by_hand_is_kept_with_it_or_not_at_all,
            replays::an_application_has_so_many_running_replays_and_no_more,
            replays::replays_are_listed_both_ways_for_their_organization,
            deliveries::pending_history_and_dead_letter_are_lists_of_their_own,
            deliveries::pending_deliveries_of_all_lanes_come_in_one_order,
            deliveries::lists_are_filtered,
            deliveries::a_filter_that_finds_little_gives_up_and_can_go_on,
            deliveries::the_dead_letter_of_an_organization_has_all_its_applications,
            deliveries::a_delivery_is_shown_with_its_last_attempt,
            deliveries::a_discarded_delivery_leaves_the_dead_letter_and_keeps_its_history,
            deliveries::what_ends_with_its_endpoint_is_not_in_the_dead_letter,
            retention::endpoints_are_walked_application_by_application,
            retention::the_newest_delivered_are_ranked_over_endpoints,
            retention::what_is_cut_off_is_found_oldest_first,
            retention::what_is_discarded_is_cut_off_by_itself_and_takes_its_message_along,
            retention::a_discarded_one_that_is_delivered_by_hand_stays,
            retention::a_removed_delivery_takes_its_attempts_and_the_last_one_the_message,
            retention::attempts_by_hand_go_with_the_last_delivery_of_the_message,
            retention::what_waits_is_never_removed,
            retention::a_delivery_that_ended_at_another_time_stays,
            retention::an_event_id_outlives_its_message_for_its_time,
            retention::an_event_id_goes_with_a_message_that_is_older,
            retention::an_event_id_is_remembered_as_long_as_was_asked_for,
            retention::expired_keys_are_found_in_steps_and_living_ones_stay,
            retention::old_messages_that_went_to_nobody_are_found_and_removed,
            retention::payloads_are_found_by_their_time_and_stay_while_something_waits,
            retention::a_deleted_endpoint_goes_when_nothing_refers_to_it,
            retention::counters_of_a_minute_that_is_not_over_stay,
            retention::a_replay_goes_when_it_has_ended_long_ago,
            retention::a_gate_that_has_held_nobody_for_long_goes,
            endings::a_living_store_says_so,
            endings::what_was_handed_over_is_written_before_the_store_closes,
            endings::a_closed_store_says_so,
        }
    };
    (@tests [$run:path] $($module:ident::$case:ident,)*) => {
        $(
            #[test]
            fn $case() {
                $run(|store| ::std::boxed::Box::pin($crate::conformance::$module::$case(store)));
            }
        )*
    };
    (@cases [] $($module:ident::$case:ident,)*) => {
        &[$((stringify!($case), |store| ::std::boxed::Box::pin($crate::conformance::$module::$case(store))),)*]
    };
}
