//! Leases in a Redis that is down, is paused, or loses connections and answers.

use crate::scene::*;
use crate::suite::polling::{still_waits, wait_until};
use aldaba_receiver::lease::{LeaseTimes, RedisLeases, RedisOptions};
use aldaba_receiver::{Claim, Ledger, LedgerError, Work};
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, Pipeline, RedisFuture, Value};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use test_servers::Redis;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};

/// A lease that outlives the test, with short timeouts.
fn soon() -> RedisOptions {
    let times = LeaseTimes { answer: millis(400), ..LeaseTimes::default() };
    RedisOptions { times, ..RedisOptions::default() }
}

async fn takes<T>(work: impl Future<Output = T>) -> (T, Duration) {
    #[expect(clippy::disallowed_methods, reason = "a test of how long something takes")]
    let begin = Instant::now();
    let result = work.await;
    #[expect(clippy::disallowed_methods, reason = "a test of how long something takes")]
    let took = begin.elapsed();
    (result, took)
}

async fn is_unavailable_in_time(scene: &Scene) {
    let (claim, took) = takes(scene.leases.claim(&event("a"), PATIENT)).await;
    assert!(matches!(claim, Err(LedgerError::Unavailable(_))), "{claim:?}");
    assert!(took < millis(2000), "{took:?}");
}

#[tokio::test]
async fn a_server_that_is_down_fails_closed_and_is_found_again() {
    let mut scene = Scene::set_with(soon()).await;
    claimed(&scene.leases, "before").await.complete().await.unwrap();
    scene.server.kill();
    is_unavailable_in_time(&scene).await;
    is_unavailable_in_time(&scene).await;
    scene.server.restart();
    scene.look = look(&scene.server).await;
    // The connection may still wait for its next reconnection.
    let found = wait_until("the server is available", async || {
        verdict(&scene.leases, &event("before")).await != Verdict::Unavailable
    });
    tokio::time::timeout(millis(3000), found).await.unwrap();
    assert_eq!(verdict(&scene.leases, &event("before")).await, Verdict::Duplicate);
    claimed(&scene.leases, "a").await.complete().await.unwrap();
    assert_eq!(scene.leases.expired_leases(), 0);
}

#[tokio::test]
async fn a_receiver_starts_before_its_server() {
    let server = Redis::start();
    server.kill();
    let leases = RedisLeases::open(server.url(), soon()).unwrap();
    assert_eq!(verdict(&leases, &event("a")).await, Verdict::Unavailable);
    server.restart();
    let found = wait_until("the server is available", async || {
        verdict(&leases, &event("a")).await != Verdict::Unavailable
    });
    tokio::time::timeout(millis(3000), found).await.unwrap();
}

#[tokio::test]
async fn a_server_that_stands_still_fails_closed() {
    let scene = Scene::set_with(soon()).await;
    claimed(&scene.leases, "before").await.complete().await.unwrap();
    scene.server.pause();
    is_unavailable_in_time(&scene).await;
    is_unavailable_in_time(&scene).await;
    scene.server.resume();
    assert_eq!(verdict(&scene.leases, &event("before")).await, Verdict::Duplicate);
}

#[tokio::test]
async fn a_waiting_claim_fails_when_the_server_stops() {
    let scene = Scene::set_with(soon()).await;
    let lease = claimed(&scene.leases, "a").await;
    let leases = scene.leases.clone();
    let waiting = tokio::spawn(async move { takes(leases.claim(&event("a"), PATIENT)).await });
    still_waits(&waiting).await;
    scene.server.kill();
    let (claim, took) = waiting.await.unwrap();
    assert!(matches!(claim, Err(LedgerError::Unavailable(_))), "{claim:?}");
    assert!(took < millis(3000), "{took:?}");
    drop(lease);
}

#[tokio::test]
async fn connections_that_are_cut_are_not_noticed_outside() {
    let mut scene = Scene::set().await;
    for round in 0..20 {
        let id = format!("evt_{round}");
        scene.command::<usize>(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        let lease = claimed(&scene.leases, &id).await;
        scene.command::<usize>(&["CLIENT", "KILL", "TYPE", "normal"]).await;
        lease.complete().await.unwrap();
        assert_eq!(verdict(&scene.leases, &event(&id)).await, Verdict::Duplicate);
    }
    assert_eq!(scene.leases.expired_leases(), 0);
}

#[tokio::test]
async fn handled_events_are_marked_when_the_server_is_back() {
    let mut scene = Scene::set_with(soon()).await;
    let lease = claimed(&scene.leases, "a").await;
    scene.server.kill();
    let completing = tokio::spawn(lease.complete());
    // In this time completing must neither fail nor succeed.
    tokio::time::sleep(millis(1500)).await;
    assert!(!completing.is_finished());
    scene.server.restart();
    completing.await.unwrap().unwrap();
    scene.look = look(&scene.server).await;
    assert!(scene.get(MARK).await.is_some());
    assert_eq!(scene.leases.expired_leases(), 0);
}

#[tokio::test]
async fn events_that_could_not_be_marked_are_counted() {
    let scene = Scene::set_with(short(millis(600))).await;
    let done = claimed(&scene.leases, "a").await;
    let given_up = claimed(&scene.leases, "b").await;
    scene.server.kill();
    assert!(matches!(done.complete().await, Err(LedgerError::Unavailable(_))));
    assert_eq!(scene.leases.expired_leases(), 1);
    assert!(given_up.is_lost(), "its life is over, as far as is known");
    tokio::time::timeout(PATIENT, given_up.lost()).await.unwrap();
    given_up.abandon().await;
    assert_eq!(scene.leases.expired_leases(), 2);
}

#[tokio::test]
async fn a_server_that_refuses_to_write_fails_closed() {
    let mut scene = Scene::set_with(soon()).await;
    let port = scene.server.port().to_string();
    let settings: [(&[&str], &[&str]); 3] = [
        (&["REPLICAOF", "127.0.0.1", &port], &["REPLICAOF", "NO", "ONE"]),
        (&["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
        (&["LPUSH", LOCK, "not a text"], &["DEL", LOCK]),
    ];
    for (break_it, mend_it) in settings {
        scene.command::<Value>(break_it).await;
        assert_eq!(verdict(&scene.leases, &event("a")).await, Verdict::Unavailable, "{break_it:?}");
        scene.command::<Value>(mend_it).await;
        assert_eq!(verdict(&scene.leases, &event("a")).await, Verdict::New, "{mend_it:?}");
        scene.until(LOCK, |lock| lock.is_none()).await;
    }
}

#[tokio::test]
async fn a_password_is_shown_nowhere() {
    let server = Redis::start_with(&["--requirepass", "hunter2"]);
    let address = |password: &str| format!("redis://:{password}@127.0.0.1:{}/", server.port());
    let right = RedisLeases::open(address("hunter2"), soon()).unwrap();
    claimed(&right, "a").await.complete().await.unwrap();
    let wrong = RedisLeases::open(address("hunter3"), soon()).unwrap();
    let refused = wrong.claim(&event("a"), NO_TIME).await.unwrap_err();
    let unreadable = RedisLeases::open("redis://:hunter3@[oops", soon()).unwrap_err();
    let database = RedisLeases::open("redis://:hunter3@127.0.0.1/name", soon()).unwrap_err();
    for shown in [
        format!("{right:?} {wrong:?}"),
        format!("{refused} {refused:?}"),
        format!("{unreadable} {unreadable:?} {database} {database:?}"),
    ] {
        assert!(!shown.contains("hunter"), "{shown}");
    }
}

/// Forwards to the server, until it drops all data of the present connections.
struct Proxy {
    address: SocketAddr,
    swallows: Arc<AtomicBool>,
    taken: Arc<AtomicUsize>,
}

impl Proxy {
    async fn to(server: &Redis) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, port) = (listener.local_addr().unwrap(), server.port());
        let (swallows, taken) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (swallowing, taking) = (Arc::clone(&swallows), Arc::clone(&taken));
        tokio::spawn(async move {
            loop {
                let (mut from, _) = listener.accept().await.unwrap();
                taking.fetch_add(1, Ordering::Relaxed);
                let swallowing = Arc::clone(&swallowing);
                tokio::spawn(async move {
                    let mut to = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let swallowed = async {
                        while !swallowing.load(Ordering::Relaxed) {
                            tokio::time::sleep(millis(5)).await;
                        }
                    };
                    tokio::select! {
                        _ = copy_bidirectional(&mut from, &mut to) => {}
                        () = swallowed => {
                            // The connection stays open and nothing comes of it.
                            let _from = from;
                            std::future::pending::<()>().await;
                        }
                    }
                });
            }
        });
        Self { address, swallows, taken }
    }
}

#[tokio::test]
async fn a_connection_that_the_network_has_swallowed_is_replaced() {
    let server = Redis::start();
    let proxy = Proxy::to(&server).await;
    let leases = RedisLeases::open(format!("redis://{}/", proxy.address), soon()).unwrap();
    let lease = claimed(&leases, "a").await;
    proxy.swallows.store(true, Ordering::Relaxed);
    // Every relay sees the flag, which it polls.
    tokio::time::sleep(millis(50)).await;
    proxy.swallows.store(false, Ordering::Relaxed);
    assert_eq!(verdict(&leases, &event("b")).await, Verdict::Unavailable);
    assert_eq!(verdict(&leases, &event("b")).await, Verdict::New);
    lease.complete().await.unwrap();
    assert!(proxy.taken.load(Ordering::Relaxed) <= 3, "{:?}", proxy.taken);
}

/// A connection that is cut before the answer of every second script.
#[derive(Clone)]
struct LosesAnswers {
    inner: MultiplexedConnection,
    asked: Arc<AtomicUsize>,
}

impl ConnectionLike for LosesAnswers {
    fn req_packed_command<'a>(&'a mut self, command: &'a Cmd) -> RedisFuture<'a, Value> {
        Box::pin(async move {
            let answer = self.inner.req_packed_command(command).await?;
            let word = command.args_iter().next();
            let is_script = matches!(word, Some(redis::Arg::Simple(b"EVALSHA")));
            if is_script && self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
                return Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset).into());
            }
            Ok(answer)
        })
    }

    fn req_packed_commands<'a>(
        &'a mut self,
        pipeline: &'a Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<Value>> {
        self.inner.req_packed_commands(pipeline, offset, count)
    }

    fn get_db(&self) -> i64 {
        self.inner.get_db()
    }
}

#[tokio::test]
async fn an_operation_with_a_lost_answer_is_recognized() {
    let mut scene = Scene::set().await;
    // So that the scripts are known.
    claimed(&scene.leases, "warm").await.complete().await.unwrap();
    let inner = look(&scene.server).await;
    let losing = LosesAnswers { inner, asked: Arc::default() };
    let leases = RedisLeases::over(losing, short(millis(900))).unwrap();
    for round in 0..3 {
        let id = format!("evt_{round}");
        let lease = claimed(&leases, &id).await;
        // In this time the lease is renewed, and must not be lost.
        tokio::time::sleep(millis(500)).await;
        assert!(!lease.is_lost());
        lease.complete().await.unwrap();
        assert_eq!(verdict(&leases, &event(&id)).await, Verdict::Duplicate);
    }
    assert!(matches!(leases.claim(&event("a"), NO_TIME).await.unwrap(), Claim::New(_)));
    scene.until(LOCK, |lock| lock.is_none()).await;
}
