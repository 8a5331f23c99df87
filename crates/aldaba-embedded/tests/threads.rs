//! The threads of an engine after its end. A separate test program, so that no other test has threads in it.

use aldaba_embedded::Aldaba;
use std::time::Duration;

fn threads() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let name = |task: std::io::Result<std::fs::DirEntry>| {
        std::fs::read_to_string(task.ok()?.path().join("comm")).ok()
    };
    tasks
        .filter_map(name)
        .map(|name| name.trim().to_owned())
        .filter(|name| name.starts_with("aldaba"))
        .collect()
}

/// A thread that has been waited for may be listed for a moment longer.
async fn all_gone() -> bool {
    for _ in 0..100 {
        if threads().is_empty() {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

#[tokio::test]
async fn an_engine_that_was_shut_down_or_dropped_leaves_no_thread() {
    let folder = tempfile::tempdir().unwrap();
    assert!(threads().is_empty());
    for shuts_down in [true, false, true] {
        let aldaba = Aldaba::builder().sqlite(folder.path()).start().await.unwrap();
        // As `docs/embedding.md` says, and the one that has opened the database.
        assert!((7..=8).contains(&threads().len()), "{:?}", threads());
        if shuts_down {
            assert_eq!(aldaba.shutdown(Duration::from_secs(5)).await.in_flight, 0);
        } else {
            drop(aldaba);
        }
        assert!(all_gone().await, "{:?}", threads());
    }
    assert!(Aldaba::builder().sqlite(folder.path()).profile("nothing").start().await.is_err());
    assert!(all_gone().await, "a start that failed leaves none either: {:?}", threads());
}
