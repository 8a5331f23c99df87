//! Leases in a real Redis: keys, owners, expiry, renewal.

use crate::scene::*;
use crate::suite::polling::wait_until;
use aldaba_receiver::lease::{LeaseTimes, RedisLeases, RedisOptions};
use aldaba_receiver::{Claim, Event, Guarantee, Ledger, LedgerError, Work};
use http::HeaderMap;
use serde_json::Value;
use std::time::Duration;
use test_servers::Redis;

#[tokio::test]
async fn e3_keys_and_their_lives_are_those_of_the_document() {
    let mut scene = Scene::set().await;
    let lease = claimed(&scene.leases, "a").await;
    let lock: u64 = scene.command(&["PTTL", LOCK]).await;
    assert!((28_000..=30_000).contains(&lock), "{lock}");
    assert_eq!(scene.get(MARK).await, None);

    lease.complete().await.unwrap();
    assert_eq!(scene.get(LOCK).await, None);
    let mark: u64 = scene.command(&["PTTL", MARK]).await;
    let month = 30 * 24 * 60 * 60 * 1000;
    assert!((month - 60_000..=month).contains(&mark), "{mark}");
    let mark: Value = serde_json::from_str(&scene.get(MARK).await.unwrap()).unwrap();
    assert_eq!(mark["type"], "payment.success");
    let at = mark["processedAt"].as_str().unwrap();
    assert!(at.len() == "2025-01-15T10:30:00.000Z".len() && at.ends_with('Z'), "{at}");
    assert!(at.parse::<jiff::Timestamp>().is_ok(), "{at}");
    assert_eq!(scene.leases.expired_leases(), 0);
    assert_eq!(scene.leases.clean(NO_TIME).await.unwrap(), 0);
    assert_eq!(RedisLeases::GUARANTEE, Guarantee::AtLeastOnce);
}

#[tokio::test]
async fn a_mark_is_forgotten_when_its_life_is_over() {
    let times = LeaseTimes { marks: millis(1000), life: millis(1000), answer: millis(300) };
    let scene = Scene::set_with(RedisOptions { times, ..RedisOptions::default() }).await;
    claimed(&scene.leases, "a").await.complete().await.unwrap();
    assert_eq!(verdict(&scene.leases, &event("a")).await, Verdict::Duplicate);
    wait_until("the mark has expired", async || verdict(&scene.leases, &event("a")).await == Verdict::New)
        .await;
}

#[tokio::test]
async fn records_of_other_programs_are_respected() {
    let mut scene = Scene::set_with(short(millis(900))).await;
    let marks =
        [r#"{"processedAt":"2025-01-15T10:30:00.000Z","type":"payment.success"}"#, "1", "", "{", "\"x\""];
    for mark in marks {
        scene.command::<()>(&["SET", MARK, mark]).await;
        assert_eq!(verdict(&scene.leases, &event("a")).await, Verdict::Duplicate, "{mark}");
    }
    scene.command::<()>(&["DEL", MARK]).await;
    for lock in ["1", "worker-7:4711", ""] {
        scene.command::<()>(&["SET", LOCK, lock, "PX", "400"]).await;
        assert_eq!(verdict(&scene.leases, &event("a")).await, Verdict::InProgress, "{lock}");
        assert_eq!(scene.get(LOCK).await.as_deref(), Some(lock));
        claimed_within(&scene.leases, "a", PATIENT).await.abandon().await;
    }
    assert_eq!(scene.leases.expired_leases(), 0);
}

#[tokio::test]
async fn a_known_id_with_another_body_is_recognized() {
    let scene = Scene::set().await;
    let other = event_of("a", r#"{"amount": 1}"#);
    let lease = claimed(&scene.leases, "a").await;
    assert_eq!(verdict(&scene.leases, &other).await, Verdict::OtherBody);
    lease.complete().await.unwrap();
    assert_eq!(verdict(&scene.leases, &other).await, Verdict::OtherBody);
    assert_eq!(verdict(&scene.leases, &event("a")).await, Verdict::Duplicate);
}

#[tokio::test]
async fn an_id_may_hold_any_characters() {
    for hash_tags in [false, true] {
        let scene = Scene::set_with(RedisOptions { hash_tags, ..RedisOptions::default() }).await;
        let long = "x".repeat(255);
        let ids = ["", "a b", "}{", "{}", "ключ", "\"';--", "*", "a\0b", &long];
        for id in ids {
            claimed(&scene.leases, id).await.complete().await.unwrap();
        }
        for id in ids {
            assert_eq!(verdict(&scene.leases, &event(id)).await, Verdict::Duplicate, "{id}");
        }
    }
}

#[tokio::test]
async fn a_type_is_written_as_it_came() {
    let mut scene = Scene::set().await;
    let odd = Event::new("a", "\"},\u{7}{\\", "{}", HeaderMap::new());
    let Claim::New(lease) = scene.leases.claim(&odd, NO_TIME).await.unwrap() else { panic!("it is new") };
    lease.complete().await.unwrap();
    let mark: Value = serde_json::from_str(&scene.get(MARK).await.unwrap()).unwrap();
    assert_eq!(mark["type"], "\"},\u{7}{\\");
}

#[tokio::test]
async fn ledgers_of_other_prefixes_know_nothing_of_each_other() {
    let scene = Scene::set().await;
    let options = RedisOptions { prefix: "shop".into(), ..RedisOptions::default() };
    let other = RedisLeases::open(scene.server.url(), options).unwrap();
    claimed(&scene.leases, "a").await.complete().await.unwrap();
    assert_eq!(verdict(&other, &event("a")).await, Verdict::New);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_copies_at_once_one_is_new() {
    let scene = Scene::set().await;
    for round in 0..20 {
        let id = format!("evt_{round}");
        let copies = (0..64).map(|_| {
            let (leases, event) = (scene.leases.clone(), event(&id));
            tokio::spawn(async move {
                match leases.claim(&event, PATIENT).await.unwrap() {
                    Claim::New(lease) => {
                        // The work.
                        tokio::time::sleep(millis(5)).await;
                        lease.complete().await.unwrap();
                        1
                    }
                    Claim::Duplicate => 0,
                    other => panic!("{other:?}"),
                }
            })
        });
        let mut new = 0;
        for copy in copies.collect::<Vec<_>>() {
            new += copy.await.unwrap();
        }
        assert_eq!(new, 1, "{id}");
    }
}

#[tokio::test]
async fn a_lease_is_renewed_while_its_event_is_handled() {
    let scene = Scene::set_with(short(millis(600))).await;
    let lease = claimed(&scene.leases, "a").await;
    assert!(matches!(scene.leases.claim(&event("a"), millis(2000)).await.unwrap(), Claim::InProgress));
    assert!(!lease.is_lost());
    lease.complete().await.unwrap();
    assert_eq!(scene.leases.expired_leases(), 0);
}

#[tokio::test]
async fn a_failed_event_can_be_claimed_at_once() {
    let mut scene = Scene::set().await;
    claimed(&scene.leases, "a").await.abandon().await;
    assert_eq!(scene.get(LOCK).await, None);
    drop(claimed(&scene.leases, "a").await);
    scene.until(LOCK, |lock| lock.is_none()).await;
    assert_eq!(scene.get(MARK).await, None);
    assert_eq!(scene.leases.expired_leases(), 0);
}

/// The lock is another's, as after an expiry that its first owner has slept through.
async fn taken_over(scene: &mut Scene) -> [aldaba_receiver::lease::OwnedLease; 2] {
    let first = claimed(&scene.leases, "a").await;
    scene.command::<()>(&["DEL", LOCK]).await;
    [first, claimed(&scene.leases, "a").await]
}

#[tokio::test]
async fn a_former_owner_releases_nothing_of_the_next_one() {
    let mut scene = Scene::set().await;
    let [first, second] = taken_over(&mut scene).await;
    let lock = scene.get(LOCK).await;
    first.abandon().await;
    assert_eq!(scene.get(LOCK).await, lock);
    assert_eq!(scene.leases.expired_leases(), 1);
    second.complete().await.unwrap();
    assert_eq!(scene.leases.expired_leases(), 1);
}

#[tokio::test]
async fn a_former_owner_completes_nothing_while_the_next_one_is_at_it() {
    let mut scene = Scene::set().await;
    let [first, second] = taken_over(&mut scene).await;
    let lock = scene.get(LOCK).await;
    assert!(matches!(first.complete().await, Err(LedgerError::Lost(_))));
    assert_eq!((scene.get(LOCK).await, scene.get(MARK).await), (lock, None));
    assert_eq!(scene.leases.expired_leases(), 1);
    second.complete().await.unwrap();
}

#[tokio::test]
async fn a_former_owner_completes_nothing_that_the_next_one_has() {
    let mut scene = Scene::set().await;
    let [first, second] = taken_over(&mut scene).await;
    second.complete().await.unwrap();
    let mark = scene.get(MARK).await;
    assert!(matches!(first.complete().await, Err(LedgerError::Lost(_))));
    assert_eq!(scene.get(MARK).await, mark);
    assert_eq!(scene.leases.expired_leases(), 1);
}

#[tokio::test]
async fn a_lease_that_another_has_taken_is_known_to_be_lost() {
    let mut scene = Scene::set_with(short(millis(900))).await;
    let [first, second] = taken_over(&mut scene).await;
    tokio::time::timeout(PATIENT, first.lost()).await.unwrap();
    assert!(first.is_lost() && !second.is_lost());
    assert_eq!(scene.leases.expired_leases(), 1);
    assert!(matches!(first.complete().await, Err(LedgerError::Lost(_))));
    assert_eq!(scene.leases.expired_leases(), 1, "it is counted once");
}

#[tokio::test]
async fn an_expired_lease_that_is_free_is_completed_and_counted() {
    let mut scene = Scene::set().await;
    let lease = claimed(&scene.leases, "a").await;
    scene.command::<()>(&["DEL", LOCK]).await;
    lease.complete().await.unwrap();
    assert!(scene.get(MARK).await.is_some());
    assert_eq!(scene.leases.expired_leases(), 1);
}

#[tokio::test]
async fn a_renewal_takes_a_free_lease_again() {
    let mut scene = Scene::set_with(short(millis(900))).await;
    let lease = claimed(&scene.leases, "a").await;
    let lock = scene.get(LOCK).await;
    scene.command::<()>(&["DEL", LOCK]).await;
    scene.until(LOCK, |now| now == lock.as_deref()).await;
    assert!(!lease.is_lost());
    lease.complete().await.unwrap();
    assert_eq!(scene.leases.expired_leases(), 1);
}

#[tokio::test]
async fn a_server_that_lost_the_scripts_gets_them_again() {
    let mut scene = Scene::set_with(short(millis(600))).await;
    for id in ["a", "b"] {
        scene.command::<()>(&["SCRIPT", "FLUSH"]).await;
        let lease = claimed(&scene.leases, id).await;
        scene.command::<()>(&["SCRIPT", "FLUSH"]).await;
        // In this time the lease is renewed, and must not be lost.
        tokio::time::sleep(millis(700)).await;
        assert!(!lease.is_lost());
        scene.command::<()>(&["SCRIPT", "FLUSH"]).await;
        lease.complete().await.unwrap();
    }
    scene.command::<()>(&["SCRIPT", "FLUSH"]).await;
    claimed(&scene.leases, "c").await.abandon().await;
    assert_eq!(scene.leases.expired_leases(), 0);
}

#[tokio::test]
async fn a_cancelled_claim_leaves_no_lock() {
    let mut scene = Scene::set().await;
    // So that the scripts are known and the connection is there.
    claimed(&scene.leases, "warm").await.abandon().await;
    scene.server.pause();
    let event = event("a");
    let claim = scene.leases.claim(&event, PATIENT);
    assert!(tokio::time::timeout(millis(100), claim).await.is_err());
    scene.server.resume();
    // The lease is granted now, although the claim was dropped.
    wait_until("the lease is granted", async || {
        let asked: String = scene.command(&["INFO", "commandstats"]).await;
        asked.contains("cmdstat_set:calls=2")
    })
    .await;
    scene.until(LOCK, |lock| lock.is_none()).await;
    assert_eq!(scene.leases.expired_leases(), 0);
}

#[tokio::test]
async fn marking_continues_when_nobody_awaits_it() {
    let mut scene = Scene::set().await;
    let lease = claimed(&scene.leases, "a").await;
    // It is begun, and dropped before the answer.
    let complete = lease.complete();
    assert!(futures_util::FutureExt::now_or_never(complete).is_none());
    scene.until(MARK, |mark| mark.is_some()).await;
    assert_eq!(scene.get(LOCK).await, None);
}

#[tokio::test]
async fn the_error_of_a_cluster_names_hash_tags() {
    let server = Redis::start_with(&["--cluster-enabled", "yes"]);
    let mut look = look(&server).await;
    redis::cmd("CLUSTER").arg(&["ADDSLOTSRANGE", "0", "16383"]).exec_async(&mut look).await.unwrap();
    wait_until("the cluster is ok", async || {
        let info: String = redis::cmd("CLUSTER").arg("INFO").query_async(&mut look).await.unwrap();
        info.contains("state:ok")
    })
    .await;
    let untagged = RedisLeases::open(server.url(), RedisOptions::default()).unwrap();
    let refused = untagged.claim(&event("a"), NO_TIME).await.unwrap_err();
    assert!(refused.to_string().contains("turn on `hash_tags`"), "{refused}");

    let tagged = RedisOptions { hash_tags: true, ..RedisOptions::default() };
    let tagged = RedisLeases::open(server.url(), tagged).unwrap();
    for id in ["a", "", "}", "{}", "}{", "a}b{c"] {
        claimed(&tagged, id).await.complete().await.unwrap();
        assert_eq!(verdict(&tagged, &event(id)).await, Verdict::Duplicate, "{id}");
    }
    let mark = redis::cmd("GET").arg("webhook:processed:{event:a}").query_async(&mut look).await;
    assert!(mark.is_ok_and(|mark: Option<String>| mark.is_some()));
}

#[tokio::test]
async fn options_that_cannot_be_are_refused() {
    let open = |options| RedisLeases::open("redis://127.0.0.1:1/", options).map(drop);
    let times = |life, marks, answer| RedisOptions {
        times: LeaseTimes { life, marks, answer },
        ..RedisOptions::default()
    };
    let second = Duration::from_secs(1);
    for (options, says) in [
        (times(NO_TIME, LeaseTimes::MARKS, second), "the life of a lease"),
        (times(second * 3601, LeaseTimes::MARKS, second), "the life of a lease"),
        (times(Duration::MAX, LeaseTimes::MARKS, second), "the life of a lease"),
        (times(second * 30, NO_TIME, second), "the life of a mark"),
        (times(second * 30, Duration::MAX, second), "the life of a mark"),
        (times(second * 30, second * 29, second), "at least as long"),
        (times(second * 30, LeaseTimes::MARKS, NO_TIME), "the timeout of the store"),
        (times(second * 30, LeaseTimes::MARKS, second * 61), "the timeout of the store"),
        (times(second * 30, LeaseTimes::MARKS, second * 11), "a third"),
    ] {
        let error = open(options).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    for prefix in ["", "a b", "a\n", "{a}", "é", &"x".repeat(65)] {
        let options = RedisOptions { prefix: prefix.to_owned(), ..RedisOptions::default() };
        assert!(open(options).unwrap_err().to_string().contains("prefix"), "{prefix}");
    }
    open(RedisOptions { prefix: "x".repeat(64), ..RedisOptions::default() }).unwrap();
    open(times(second * 30, LeaseTimes::MARKS, second * 10)).unwrap();
}
