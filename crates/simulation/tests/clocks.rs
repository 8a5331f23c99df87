//! The clock of the server's machine is set, before a start, while it runs and across restarts, and is right again in the
//! end. A failing seed prints itself and how to run it alone.

use simulation::checks::clock_verdict;
use simulation::run::play;
use simulation::scenario::Scenario;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const SEEDS: u64 = 100;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}: expected a whole number")))
}

/// Plays one seed: how many requests, lives and steps there were, or what is wrong with it.
fn check(seed: u64, traced: bool) -> Result<[usize; 3], String> {
    let world = play(Scenario::with_clock_steps(seed), traced);
    if let Some(trace) = &world.log.lock().trace {
        println!("{}", trace.join("\n"));
    }
    let violations: Vec<_> = clock_verdict(&world).iter().map(|violation| format!("  {violation}")).collect();
    if violations.is_empty() {
        let log = world.log.lock();
        return Ok([log.requests.len(), log.lives.len(), world.scenario.clock_steps.len()]);
    }
    let alone = format!("  alone: ALDABA_SEED={seed} cargo test -p simulation --test clocks -- --nocapture");
    Err(format!("seed {seed}:\n{}\n{alone}", violations.join("\n")))
}

/// As many as `ALDABA_SEEDS` says, a tenth of them: these runs are longer.
#[test]
fn a_wrong_clock_removes_nothing_revives_nothing_and_buries_nothing() {
    if let Some(seed) = number("ALDABA_SEED") {
        let volume = check(seed, true).unwrap_or_else(|text| panic!("{text}"));
        return println!("seed {seed}: {volume:?}");
    }
    let first = number("ALDABA_FIRST_SEED").unwrap_or(0);
    let (next, end) =
        (AtomicU64::new(first), first + number("ALDABA_SEEDS").map_or(SEEDS, |all| all.div_ceil(10)));
    let results = Mutex::new(([0; 3], Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let result = check(seed, false);
                    let mut results = results.lock().expect("no panic");
                    match result {
                        Ok(volume) => results.0.iter_mut().zip(volume).for_each(|(sum, more)| *sum += more),
                        Err(text) => results.1.push((seed, text)),
                    }
                }
            });
        }
    });
    let (volume, mut failures) = results.into_inner().expect("no panic");
    failures.sort();
    println!("{} seeds: {volume:?} requests, lives and steps", end - first);
    let texts: Vec<_> = failures.iter().map(|(_, text)| text.as_str()).collect();
    assert!(failures.is_empty(), "{} seeds failed\n{}", failures.len(), texts.join("\n"));
}

/// The clock was set back by an hour between the two attempts of a delivery, and the second one was answered 410.
#[test]
fn the_last_attempt_is_that_of_the_last_commit() {
    check(218, false).unwrap_or_else(|text| panic!("{text}"));
}
