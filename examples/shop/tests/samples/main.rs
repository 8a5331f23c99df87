//! What every sample must do, claimed once and tested on each. The claims of a sample run one after another, against the
//! same process; `cargo test -- WORDS` runs those whose name holds the words.

mod crash;
mod delivered;
mod edge;
mod failures;
mod mails;
mod marks;
mod once;
mod refusals;
mod start;
mod waiting;
mod world;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use shop::{Sample, Signing};
use std::process::ExitCode;
use std::sync::Arc;
use world::{Stage, World};

/// Its name, and what tests it.
type Claim = (&'static str, fn(Arc<World>) -> BoxFuture<'static, ()>);

macro_rules! claims {
    ($($module:ident::$name:ident),* $(,)?) => {
        &[$((stringify!($name), |world| $module::$name(world).boxed())),*]
    };
}

/// What holds where mark and work are in one transaction.
const OF_TRANSACTIONS: &[Claim] = claims![
    once::e13_a_first_event_has_its_effect_and_a_repeat_is_a_duplicate,
    once::e12_an_order_has_the_name_of_its_customer,
    once::e13_three_copies_leave_one_mark_and_one_effect,
    once::e13_ten_parallel_copies_are_all_answered_200_and_one_of_them_is_new,
    once::a_repeat_does_not_run_where_no_guard_would_hold_it,
    once::e12_a_second_event_of_a_payment_has_no_second_effect,
    once::e12_the_stock_does_not_fall_below_zero,
    once::an_event_that_nobody_handles_is_marked,
    once::e6_old_marks_are_cleaned_and_young_ones_stay,
    marks::a_mark_is_known_in_every_form_that_the_library_has_for_it,
    start::a_secret_with_which_anybody_could_sign_is_refused_at_the_start,
    start::an_invalid_wait_timeout_is_refused_at_the_start,
    refusals::what_is_not_signed_well_is_401,
    refusals::an_event_without_a_fit_id_is_400,
    refusals::anything_but_post_is_405,
    refusals::a_body_that_is_too_long_is_413,
    refusals::an_id_with_another_body_is_409,
    refusals::a_body_that_is_no_json_is_not_taken,
    failures::a_failure_rolls_back_mark_and_work_and_the_next_try_has_its_effect,
    failures::e10_an_event_that_failed_is_noted_with_its_error,
    failures::an_event_that_comes_before_its_order_is_tried_again,
    failures::e12_fields_of_wrong_types_fail_and_change_nothing,
    waiting::a_copy_waits_for_work_in_progress_and_is_a_duplicate_after_its_commit,
    waiting::a_copy_waits_for_work_in_progress_and_is_new_after_its_rollback,
    waiting::past_the_wait_timeout_a_copy_is_409_with_retry_after,
    mails::a_mail_goes_out_after_the_commit_and_none_for_repeats_and_failures,
    mails::a_mail_server_that_is_down_or_silent_changes_no_answer,
    mails::an_address_with_line_breaks_gets_no_mail_and_changes_no_answer,
    failures::a_database_that_is_away_is_503_with_retry_after,
    failures::a_database_that_hangs_is_503_with_retry_after,
    failures::a_database_that_hangs_under_the_work_is_503_and_rolls_back,
    crash::killed_under_load_every_event_has_one_effect,
    delivered::aldaba_retries_a_failure_and_a_resend_is_a_duplicate,
];

/// What depends on how deliveries are signed.
const OF_SIGNATURES: &[Claim] = claims![
    once::e13_a_first_event_has_its_effect_and_a_repeat_is_a_duplicate,
    once::an_event_that_nobody_handles_is_marked,
    refusals::what_is_not_signed_well_is_401,
    refusals::an_event_without_a_fit_id_is_400,
    start::a_secret_with_which_anybody_could_sign_is_refused_at_the_start,
    delivered::aldaba_retries_a_failure_and_a_resend_is_a_duplicate,
];

/// What holds where the mark is a key beside the work.
const OF_KEYS: &[Claim] = claims![
    edge::e13_a_first_event_is_handled_and_repeats_are_duplicates,
    edge::a_failure_is_noted_with_its_error_and_the_next_try_is_handled,
    edge::a_crash_before_the_mark_loses_nothing,
    edge::parallel_copies_may_run_beside_each_other,
    edge::e3_a_mark_is_kept_for_30_days,
    edge::a_store_that_is_away_is_503_with_retry_after,
    edge::a_store_that_hangs_is_503_with_retry_after,
    edge::a_record_counts_by_its_status_and_one_that_nobody_can_read_is_a_mark,
    start::a_secret_with_which_anybody_could_sign_is_refused_at_the_start,
    refusals::what_is_not_signed_well_is_401,
    refusals::an_event_without_a_fit_id_is_400,
    refusals::anything_but_post_is_405,
    refusals::a_body_that_is_too_long_is_413,
    refusals::an_id_with_another_body_is_409,
    refusals::a_body_that_is_no_json_is_not_taken,
    delivered::aldaba_retries_a_failure_and_a_resend_is_a_duplicate,
];

fn main() -> ExitCode {
    // Options of the usual harness mean nothing here.
    let words: Vec<_> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let failed = runtime.block_on(run(&words));
    if failed.is_empty() {
        return ExitCode::SUCCESS;
    }
    eprintln!("\nfailed:\n{}", failed.join("\n"));
    ExitCode::FAILURE
}

/// The names of those that failed.
async fn run(words: &[String]) -> Vec<String> {
    let stage = Arc::new(Stage::set().await);
    let mut failed = Vec::new();
    for sample in Sample::TRANSACTIONAL {
        failed.extend(test(&stage, sample, Signing::Standard, OF_TRANSACTIONS, words).await);
        failed.extend(test(&stage, sample, Signing::Branded, OF_SIGNATURES, words).await);
    }
    for sample in Sample::BY_KEY {
        for signing in Signing::BOTH {
            failed.extend(test(&stage, sample, signing, OF_KEYS, words).await);
        }
    }
    failed
}

async fn test(
    stage: &Arc<Stage>,
    sample: Sample,
    signing: Signing,
    claims: &[Claim],
    words: &[String],
) -> Vec<String> {
    let full = |name: &str| format!("{} {}: {name}", sample.name(), signing.name());
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| full(name).contains(word));
    let claims: Vec<_> = claims.iter().filter(|(name, _)| wanted(name)).collect();
    let mut failed = Vec::new();
    if claims.is_empty() {
        return failed;
    }
    let world = Arc::new(World::new(stage, sample, signing).await);
    for (name, claim) in claims {
        let seconds = world::stopwatch();
        let outcome = tokio::spawn(claim(Arc::clone(&world))).await;
        println!("{} ... {} ({:.1} s)", full(name), if outcome.is_ok() { "ok" } else { "FAILED" }, seconds());
        if outcome.is_err() {
            eprintln!("--- what the sample has printed:\n{}---", world.log().await);
            failed.push(full(name));
        }
    }
    failed
}
