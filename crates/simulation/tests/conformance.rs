//! The simulated store keeps the contract that the real ones keep.

use aldaba_delivery::Timestamp;
use aldaba_store::conformance::Case;
use simulation::entropy::Dice;
use simulation::process::Process;
use simulation::store::{Faults, SimStore};
use std::sync::Arc;

fn run(case: Case) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without IO").block_on(async {
        let process = Process::new(0, Timestamp::from_millis(0));
        let store = SimStore::start(Arc::default(), Arc::default(), process, Faults::none(), Dice::new(1));
        case(Arc::new(store)).await;
    });
}

aldaba_store::conformance_tests!(tests run);
