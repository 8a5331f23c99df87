//! A database that another program holds, such as a shell on the file.

use super::wait_for;
use crate::{LIMIT, builder, event, start, timed};
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// Locks the database for all other writers until it is dropped.
fn held(folder: &Path) -> Connection {
    let connection = Connection::open(folder.join("aldaba.db")).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    connection
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_a_disk_that_hangs_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let aldaba = start(folder.path()).await;
    let app = aldaba.application("customer").await.unwrap();
    app.send(event(1).id("before")).await.unwrap();
    let other = held(folder.path());
    let sender = app.clone();
    let sending = tokio::spawn(async move { sender.send(event(2).id("meanwhile")).await });
    // The event reaches the writer meanwhile, for which there is no signal.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let (left, took) = timed(aldaba.shutdown(Duration::from_millis(500))).await;
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!left.folder_is_free, "{left:?}");
    assert!(builder(folder.path()).start().await.is_err(), "it is still being written");

    drop(other);
    assert!(sending.await.unwrap().is_ok(), "a submitted event is written, and its sender is notified");
    let aldaba = wait_for("the folder is free", async || builder(folder.path()).start().await.ok()).await;
    let app = aldaba.application("customer").await.unwrap();
    for id in ["before", "meanwhile"] {
        assert!(app.message(id).await.unwrap().is_some(), "{id}");
    }
    assert!(aldaba.shutdown(LIMIT).await.folder_is_free);
}
