//! Plays a scenario: one life of the server after another, until everything is settled.

use crate::client::Client;
use crate::entropy::{Dice, SeededEntropy};
use crate::log::{Life, LifeEnd};
use crate::process::Process;
use crate::sabotage::Sabotage;
use crate::scenario::{LifePlan, PlannedEnd, Scenario};
use crate::store::{Faults, SimStore};
use crate::transport::SimTransport;
use crate::world::World;
use aldaba_delivery::{HealthStatus, OnExhausted, Ordering, Timestamp};
use aldaba_engine::{Engine, Parts, StartError, Vault};
use aldaba_store::Endpoint;
use std::sync::Arc;
use std::time::Duration;

/// How often the last life is asked whether it is done.
const CHECK_INTERVAL: Duration = Duration::from_secs(600);
/// How long a server that could not start is left alone.
const START_AGAIN: Duration = Duration::from_secs(30);

/// Plays a scenario to its end.
pub fn play(scenario: Scenario, traced: bool) -> Arc<World> {
    let world = World::new(scenario, traced);
    let mut now = world.scenario.start;
    let mut plans = world.scenario.lives.clone().into_iter();
    let mut plan = plans.next();
    for number in 0.. {
        let (end, ended) = live(&world, number, plan, now);
        let last_step = {
            let mut log = world.log.lock();
            log.note(ended, || format!("life {number}: {end:?}"));
            log.step()
        };
        let health = world.disk.lock().endpoints().into_values().map(|row| (row.id, row.health)).collect();
        world.log.lock().lives.push(Life { began: now, ended, last_step, end, health });
        now = match (end, plan) {
            (LifeEnd::Settled | LifeEnd::TimedOut, _) => return world,
            (LifeEnd::NotStarted, _) => ended + START_AGAIN,
            (_, Some(LifePlan { downtime, .. })) => {
                plan = plans.next();
                ended + downtime
            }
            (_, None) => ended + START_AGAIN,
        };
    }
    world
}

/// Whether what waits for an endpoint waits for its owner, not for the server.
pub fn is_held(endpoint: &Endpoint) -> bool {
    let health = &endpoint.health;
    let held = match health.status {
        HealthStatus::Active => false,
        HealthStatus::Failed => health.next_probe_at.is_none(),
        HealthStatus::Gone => true,
        HealthStatus::Blocked => endpoint.config.ordering == Ordering::Fifo(OnExhausted::Block),
    };
    (held || endpoint.config.disabled) && !endpoint.deleted
}

fn live(world: &Arc<World>, number: usize, plan: Option<LifePlan>, now: Timestamp) -> (LifeEnd, Timestamp) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without IO");
    runtime.block_on(async {
        let process = Process::with_clock_steps(number, now, &world.scenario.clock_steps);
        let end = tokio::select! {
            biased;
            () = process.death() => LifeEnd::Killed,
            end = run(world, &process, plan) => end,
        };
        // Dropping the runtime ends all tasks; until then they must leave no mark.
        process.die();
        (end, process.now())
    })
}

async fn run(world: &Arc<World>, process: &Arc<Process>, plan: Option<LifePlan>) -> LifeEnd {
    let Ok(engine) = start(world, process, plan).await else {
        return LifeEnd::NotStarted;
    };
    let client = Client { world: world.clone(), engine: engine.clone(), process: process.clone() };
    if process.number == 0
        && let Err(error) = client.set_up().await
    {
        world.notes.lock().surprises.push(format!("the tenants could not be made: {error}"));
    }
    client.start();
    if !world.scenario.clock_steps.is_empty() {
        tokio::spawn(process.clone().set_clock(world.scenario.clock_steps.clone()));
        tokio::spawn(client.clone().use_tokens());
        tokio::spawn(client.clone().watch_waits());
    }
    let Some(plan) = plan else {
        return settle(world, process, &engine).await;
    };
    tokio::time::sleep(plan.length).await;
    match plan.end {
        PlannedEnd::Kill => LifeEnd::Killed,
        PlannedEnd::Stop { limit } => LifeEnd::Stopped { left: engine.shutdown(limit).await },
    }
}

async fn start(
    world: &Arc<World>,
    process: &Arc<Process>,
    plan: Option<LifePlan>,
) -> Result<Engine, StartError> {
    let scenario = &world.scenario;
    let dice = |purpose| Dice::of(scenario.seed ^ (process.number as u64) << 40, purpose);
    let faults = Faults { crash: plan.and_then(|plan| plan.crash), ..scenario.faults.clone() };
    let (disk, log) = (world.disk.clone(), world.log.clone());
    let store = SimStore::start(disk, log, process.clone(), faults, dice("store"));
    let parts = Parts {
        store: Arc::new(store),
        transport: Arc::new(SimTransport::new(world.clone(), process.clone(), dice("transport"))),
        clock: process.machine.clone(),
        entropy: Arc::new(SeededEntropy::new(dice("entropy"))),
        vault: Vault::new([3; 32]),
        policies: scenario.policies(),
    };
    let mut options = scenario.options.clone();
    if scenario.sabotage == Some(Sabotage::WidenLanes) {
        options.lane_start *= 4;
        options.lane_most *= 4;
    }
    if scenario.sabotage == Some(Sabotage::WidenOrigins) {
        options.requests_per_origin *= 4;
    }
    Engine::start(parts, options).await
}

/// Lets the server run until nothing is left to do.
async fn settle(world: &World, process: &Process, engine: &Engine) -> LifeEnd {
    process.sleep_until(world.scenario.faults_end).await;
    loop {
        let done = world.notes.lock().all_over() && {
            let disk = world.disk.lock();
            !disk.is_replaying() && disk.waiting().iter().all(|(_, endpoint)| is_held(endpoint))
        };
        if done {
            break;
        }
        if process.now() > world.scenario.limit {
            return LifeEnd::TimedOut;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    match engine.shutdown(Duration::from_secs(60)).await {
        0 => LifeEnd::Settled,
        _ => LifeEnd::TimedOut,
    }
}
