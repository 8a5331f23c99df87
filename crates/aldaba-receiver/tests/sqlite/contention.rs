//! Copies that meet, within a process and between two.

use crate::stage::{Database, WAIT_TIMEOUT, effect, event, event_with, new};
use crate::suite::polling::still_waits;
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;

const A_WHILE: Duration = Duration::from_millis(300);

#[tokio::test]
async fn repeats_are_answered_while_a_handler_holds_the_write_lock() {
    let database = Database::set().await;
    database.claim_new(&event("evt_1")).await.complete().await.unwrap();
    let _work = database.claim_new(&event("evt_2")).await;
    for ledger in [Arc::clone(&database.ledger), database.another_ledger()] {
        let repeat = tokio::time::timeout(A_WHILE * 3, ledger.claim(&event("evt_1"), WAIT_TIMEOUT)).await;
        assert!(matches!(repeat.unwrap().unwrap(), Claim::Duplicate));
        let other = ledger.claim(&event_with("evt_1", "[]"), WAIT_TIMEOUT).await;
        assert!(matches!(other.unwrap(), Claim::OtherBody));
    }
}

#[tokio::test]
async fn handlers_of_two_events_run_one_after_another() {
    let database = Database::set().await;
    let first = database.claim_new(&event("evt_1")).await;
    let ledger = Arc::clone(&database.ledger);
    let second = tokio::spawn(async move { ledger.claim(&event("evt_2"), WAIT_TIMEOUT).await });
    still_waits(&second).await;
    let refused = database.ledger.claim(&event("evt_3"), A_WHILE).await;
    assert!(matches!(refused, Err(LedgerError::Unavailable(_))), "{refused:?}");
    first.complete().await.unwrap();
    new(second.await.unwrap()).complete().await.unwrap();
}

#[tokio::test]
async fn a_copy_in_another_process_waits_for_the_end() {
    let database = Database::set().await;
    for (id, commits) in [("evt_1", true), ("evt_2", false)] {
        let mut work = database.claim_new(&event(id)).await;
        effect(&mut work, id).await.unwrap();
        let other = database.another_ledger();
        let copy = tokio::spawn(async move { other.claim(&event(id), WAIT_TIMEOUT).await });
        still_waits(&copy).await;
        if commits {
            work.complete().await.unwrap();
            assert!(matches!(copy.await.unwrap().unwrap(), Claim::Duplicate));
        } else {
            work.abandon().await;
            let mut work = new(copy.await.unwrap());
            effect(&mut work, id).await.unwrap();
            work.complete().await.unwrap();
        }
        assert_eq!(database.count("effects", id), 1);
    }
}

#[tokio::test]
async fn past_the_wait_timeout_work_of_another_process_is_in_progress() {
    let database = Database::set().await;
    let _work = database.claim_new(&event("evt_1")).await;
    let other = database.another_ledger();
    for wait_timeout in [A_WHILE, Duration::ZERO] {
        assert!(matches!(other.claim(&event("evt_1"), wait_timeout).await.unwrap(), Claim::InProgress));
        assert!(matches!(
            database.ledger.claim(&event("evt_1"), wait_timeout).await.unwrap(),
            Claim::InProgress
        ));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_two_processes_each_have_one_effect() {
    let database = Database::set().await;
    let ledgers = [Arc::clone(&database.ledger), database.another_ledger()];
    let claims = (0..60).flat_map(|number| ledgers.iter().map(move |ledger| (number, Arc::clone(ledger))));
    let tasks = claims.map(|(number, ledger)| {
        tokio::spawn(async move {
            let id = format!("evt_{number}");
            match ledger.claim(&event(&id), WAIT_TIMEOUT).await.unwrap() {
                Claim::New(mut work) => {
                    effect(&mut work, &id).await.unwrap();
                    work.complete().await.unwrap();
                    1
                }
                Claim::Duplicate => 0,
                other => panic!("{other:?}"),
            }
        })
    });
    let new: usize = join_all(tasks.collect::<Vec<_>>()).await.into_iter().map(Result::unwrap).sum();
    assert_eq!(new, 60);
    for number in 0..60 {
        assert_eq!(database.count("effects", &format!("evt_{number}")), 1);
    }
}
