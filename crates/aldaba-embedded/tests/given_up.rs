//! A cancelled start. A separate test program, because it observes panics of all threads.

use aldaba_embedded::{Aldaba, Builder};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

static PANICS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn builder(folder: &Path) -> Builder {
    Aldaba::builder().sqlite(folder).low_space(0)
}

#[tokio::test]
async fn a_cancelled_start_does_not_panic_and_releases_the_folder() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        PANICS.lock().unwrap().push(panic.to_string());
        usual(panic);
    }));
    for micros in [0, 50, 100, 200, 400, 800, 1500, 3000, 6000, 12_000, 25_000, 50_000, 100_000] {
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..3 {
            let limit = Duration::from_micros(micros);
            drop(tokio::time::timeout(limit, builder(folder.path()).start()).await);
        }
        let free = async {
            while builder(folder.path()).start().await.is_err() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let became_free = tokio::time::timeout(Duration::from_secs(20), free).await;
        assert!(became_free.is_ok(), "after {micros} µs");
    }
    let panics = std::mem::take(&mut *PANICS.lock().unwrap());
    assert!(panics.is_empty(), "{panics:?}");
}
