//! Nothing is global: several engines, several runtimes, one process.

use crate::receiver::Receiver;
use crate::{LIMIT, builder, event, start};
use aldaba_embedded::{Aldaba, EndpointSpec, Error, StartError};
use std::path::Path;
use std::thread;
use tokio::runtime::Builder as Runtime;

async fn with_endpoint(folder: &Path, receiver: &Receiver) -> Aldaba {
    let aldaba = start(folder).await;
    let app = aldaba.application("customer").await.unwrap();
    app.add_endpoint(EndpointSpec::to(receiver.url("/"))).await.unwrap();
    aldaba
}

async fn send(aldaba: &Aldaba, number: usize) {
    aldaba.application("customer").await.unwrap().send(event(number)).await.unwrap();
}

#[tokio::test]
async fn two_engines_in_one_process_deliver_each_its_own_and_one_stops_without_the_other() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let receivers = [Receiver::answering(200), Receiver::answering(200)];
    let one = with_endpoint(folders[0].path(), &receivers[0]).await;
    let two = with_endpoint(folders[1].path(), &receivers[1]).await;
    send(&one, 1).await;
    send(&two, 2).await;
    assert_eq!(receivers[0].next().json()["n"], 1);
    assert_eq!(receivers[1].next().json()["n"], 2);
    assert!(receivers.iter().all(Receiver::stays_quiet), "each has got its own alone");
    assert_eq!(one.shutdown(LIMIT).await.in_flight, 0);
    send(&two, 3).await;
    assert_eq!(receivers[1].next().json()["n"], 3);
    assert_eq!(one.application("customer").await.unwrap_err(), Error::Stopped);
    assert_eq!(two.shutdown(LIMIT).await.in_flight, 0);
}

#[test]
fn engines_of_two_runtimes_live_side_by_side_and_each_can_be_used_from_the_other() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let receivers = [Receiver::answering(200), Receiver::answering(200)];
    let runtimes = [(); 2].map(|()| Runtime::new_current_thread().enable_all().build().unwrap());
    let engines: Vec<_> =
        (0..2).map(|n| runtimes[n].block_on(with_endpoint(folders[n].path(), &receivers[n]))).collect();
    thread::scope(|scope| {
        for (n, runtime) in runtimes.iter().enumerate() {
            let engines = &engines;
            scope.spawn(move || {
                runtime.block_on(async {
                    for (m, engine) in engines.iter().enumerate() {
                        send(engine, 10 * n + m).await;
                    }
                });
            });
        }
    });
    for (m, receiver) in receivers.iter().enumerate() {
        let mut got = [receiver.next(), receiver.next()].map(|arrival| arrival.json()["n"].as_u64().unwrap());
        got.sort_unstable();
        assert_eq!(got, [m as u64, 10 + m as u64]);
    }
}

#[test]
fn an_engine_goes_on_after_the_runtime_that_started_it_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let runtime = Runtime::new_current_thread().enable_all().build().unwrap();
    let engine = runtime.block_on(with_endpoint(folder.path(), &receiver));
    drop(runtime);
    let runtime = Runtime::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(send(&engine, 7));
    drop(runtime);
    assert_eq!(receiver.next().json()["n"], 7);
}

#[tokio::test]
async fn a_program_that_blocks_its_runtime_does_not_hold_deliveries_up() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::answering(200);
    let engine = with_endpoint(folder.path(), &receiver).await;
    send(&engine, 1).await;
    // On the only thread of this runtime, without a turn for anything else.
    assert_eq!(receiver.next().json()["n"], 1);
}

#[tokio::test]
async fn a_folder_that_is_in_use_is_refused_until_it_is_free() {
    let folder = tempfile::tempdir().unwrap();
    let first = start(folder.path()).await;
    let refused = builder(folder.path()).start().await.unwrap_err();
    assert!(matches!(refused, StartError::InUse { .. }), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("is in use") && text.contains("stop that one first"), "{text}");
    assert!(text.contains(&folder.path().display().to_string()), "{text}");
    first.shutdown(LIMIT).await;
    let second = start(folder.path()).await;
    drop(second);
    start(folder.path()).await.shutdown(LIMIT).await;
}
