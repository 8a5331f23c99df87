//! What outlives the server.

use crate::client::Notes;
use crate::log::Log;
use crate::scenario::Scenario;
use crate::store::Disk;
use parking_lot::Mutex;
use std::sync::Arc;

#[derive(Debug)]
pub struct World {
    pub scenario: Scenario,
    pub disk: Arc<Mutex<Disk>>,
    pub log: Arc<Mutex<Log>>,
    pub notes: Mutex<Notes>,
}

impl World {
    pub fn new(scenario: Scenario, traced: bool) -> Arc<Self> {
        let notes = Mutex::new(Notes::new(&scenario));
        let world = Self { scenario, disk: Arc::default(), log: Arc::default(), notes };
        world.log.lock().trace = traced.then(Vec::new);
        Arc::new(world)
    }
}
