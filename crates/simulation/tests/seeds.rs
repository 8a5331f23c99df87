//! Many seeds, every check. A failing seed prints itself and how to run it alone.

use simulation::checks::{Volume, verdict, volume};
use simulation::run::play;
use simulation::scenario::Scenario;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const SEEDS: u64 = 300;
/// So many seeds together have some of everything.
const MANY: u64 = 100;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value}: expected a whole number")))
}

/// Plays one seed; the text of what is wrong with it.
fn check(seed: u64, traced: bool) -> Result<Volume, String> {
    let world = catch_unwind(AssertUnwindSafe(|| play(Scenario::new(seed), traced)))
        .map_err(|_| format!("seed {seed}: the run panicked\n{}", how_to_repeat(seed)))?;
    if let Some(trace) = &world.log.lock().trace {
        println!("{}", trace.join("\n"));
    }
    let violations = verdict(&world);
    if violations.is_empty() {
        return Ok(volume(&world));
    }
    let texts: Vec<_> = violations.iter().map(|violation| format!("  {violation}")).collect();
    Err(format!("seed {seed}:\n{}\n{}", texts.join("\n"), how_to_repeat(seed)))
}

fn how_to_repeat(seed: u64) -> String {
    format!("  alone: ALDABA_SEED={seed} cargo test -p simulation --test seeds -- --nocapture")
}

#[test]
fn every_seed_keeps_every_promise() {
    if let Some(seed) = number("ALDABA_SEED") {
        let volume = check(seed, true).unwrap_or_else(|text| panic!("{text}"));
        return println!("seed {seed}: {volume:?}");
    }
    let first = number("ALDABA_FIRST_SEED").unwrap_or(0);
    let next = AtomicU64::new(first);
    let end = first + number("ALDABA_SEEDS").unwrap_or(SEEDS);
    let results = Mutex::new((Volume::default(), Vec::new()));
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
                        Ok(volume) => results.0 += volume,
                        Err(text) => results.1.push((seed, text)),
                    }
                }
            });
        }
    });
    let (volume, mut failures) = results.into_inner().expect("no panic");
    failures.sort();
    println!("{} seeds: {volume:?}", end - first);
    let texts: Vec<_> = failures.iter().map(|(_, text)| text.as_str()).collect();
    assert!(failures.is_empty(), "{} seeds failed\n{}", failures.len(), texts.join("\n"));
    if end - first >= MANY {
        let all = volume.0.values().all(|count| *count > 0);
        assert!(all, "the scenarios have lost something: {volume:?}");
    }
}
