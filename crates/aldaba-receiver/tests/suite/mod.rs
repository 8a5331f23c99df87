//! The requirements of every ledger, over real HTTP. The tests of a ledger set its stage, and `suite!` does the rest:
//!
//! ```ignore
//! #[path = "../suite/mod.rs"]      // from tests/my_ledger/main.rs
//! mod suite;
//! suite::suite!(MyStage::set()); // a future, once for each test
//! ```

pub(crate) mod after_commit;
pub(crate) mod cleaning;
pub(crate) mod client;
pub(crate) mod counted;
pub(crate) mod counting;
pub(crate) mod document;
pub(crate) mod failures;
pub(crate) mod leaving;
pub(crate) mod polling;
pub(crate) mod rates;
pub(crate) mod refusals;
pub(crate) mod scene;
pub(crate) mod waiting;

use aldaba_receiver::{Event, Failure, Guarantee, Ledger};
use std::future::Future;

/// A ledger, and a place where the handler's effects are counted.
pub(crate) trait Stage: Send + Sync + 'static {
    type Ledger: Ledger;

    /// Whether two events can be handled at the same time; `false` for a database with one writer.
    const SIDE_BY_SIDE: bool = true;

    /// Whether marks stay until a cleanup; `false` if they expire.
    const CLEANS: bool = true;

    /// A handle on the one ledger of this stage.
    fn ledger(&self) -> Self::Ledger;

    /// The work of the handler: one effect of this event, in the transaction if there is one.
    fn work(
        &self,
        event: &Event,
        work: &mut <Self::Ledger as Ledger>::Work,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// How many effects of this event there are.
    fn effects(&self, event_id: &str) -> impl Future<Output = u64> + Send;

    /// How many marks say that this event was handled.
    fn marks(&self, event_id: &str) -> impl Future<Output = u64> + Send;

    /// Makes the ledger fail, as when its server is gone.
    fn take_down(&self) -> impl Future<Output = ()> + Send;

    fn bring_back(&self) -> impl Future<Output = ()> + Send;
}

/// How many effects are left of a handler that worked and then failed.
pub(crate) fn left_behind<S: Stage>() -> u64 {
    match S::Ledger::GUARANTEE {
        Guarantee::ExactlyOnceEffect => 0,
        Guarantee::AtLeastOnce => 1,
    }
}

macro_rules! suite {
    ($stage:expr) => {
        $crate::suite::suite! { @tests $stage;
            document::e2_the_first_event_is_processed,
            document::e2_a_repeat_is_answered_as_a_duplicate,
            document::e13_three_copies_leave_one_effect_and_one_mark,
            document::e4_ten_copies_in_parallel_are_all_answered_and_one_is_processed,
            document::events_of_other_ids_do_not_wait_for_each_other,
            failures::e5_a_failed_event_is_not_marked_and_its_retry_is_processed,
            failures::e5_what_a_failed_handler_did_is_undone_where_there_is_a_transaction,
            failures::e5_a_failure_is_acknowledged_where_that_was_chosen,
            failures::e10_what_a_handler_failed_with_is_noted_and_the_note_is_no_mark,
            failures::e10_notes_of_failures_are_cleaned_like_marks,
            failures::a_panic_is_a_failure_like_any_other,
            failures::a_handler_that_takes_too_long_is_ended_and_its_work_abandoned,
            failures::an_answer_that_is_no_success_is_a_failure_that_is_asked_for_again,
            failures::what_an_error_says_is_told_only_if_it_is_meant_to_be,
            failures::a_handler_that_keeps_its_work_has_failed,
            refusals::e2_and_e9_bad_requests_are_refused_and_nothing_is_stored_or_run,
            refusals::a_body_that_is_told_to_be_too_large_is_not_read,
            refusals::a_body_without_end_is_read_up_to_the_limit,
            refusals::a_known_id_with_another_body_is_a_conflict,
            refusals::an_id_in_progress_with_another_body_is_a_conflict,
            refusals::a_ledger_that_is_down_runs_nothing_and_asks_again,
            refusals::e9_the_ledger_is_not_asked_before_the_signature_held,
            refusals::a_body_that_does_not_come_is_not_waited_for,
            waiting::e4_a_copy_waits_for_the_end_and_is_then_a_duplicate,
            waiting::e4_a_copy_takes_over_when_the_first_one_fails,
            waiting::e4_past_the_wait_timeout_a_copy_is_told_to_come_again,
            leaving::a_handler_goes_on_when_its_sender_has_gone,
            leaving::a_handler_stops_with_its_sender_where_that_was_chosen,
            leaving::a_program_can_let_its_handlers_end,
            after_commit::an_action_runs_once_the_effect_is_committed,
            after_commit::e5_an_action_that_fails_changes_no_answer,
            after_commit::e5_an_action_that_panics_changes_no_answer,
            after_commit::e5_an_action_that_hangs_delays_no_answer_and_is_ended,
            after_commit::nothing_follows_from_a_failure_or_a_duplicate,
            counting::e7_every_outcome_is_counted,
            rates::e7_the_rate_of_duplicates_is_a_percentage_over_a_window_and_survives_a_restart,
            rates::e7_what_could_not_be_counted_is_counted_later,
            cleaning::e6_old_marks_are_removed_and_counted,
            cleaning::e6_a_cleanup_runs_by_itself_and_reports,
            cleaning::a_cleanup_that_fails_says_so_and_runs_again,
        }
    };
    (@tests $stage:expr; $($room:ident::$name:ident),* $(,)?) => {$(
        #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
        async fn $name() {
            $crate::suite::$room::$name($stage.await).await;
        }
    )*};
}

pub(crate) use suite;
