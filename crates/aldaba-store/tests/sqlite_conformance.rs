//! The SQLite backend passes the suite.

use aldaba_store::Store;
use aldaba_store::conformance::Case;
use aldaba_store::sqlite::{Options, SqliteStore};
use std::sync::Arc;

fn run(case: Case) {
    let folder = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&Options::new(folder.path())).unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        case(Arc::clone(&store)).await;
        store.close().await.unwrap();
    });
}

aldaba_store::conformance_tests!(tests run);
