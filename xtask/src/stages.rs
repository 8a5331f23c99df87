//! What is checked, in stages with a time budget each.

use crate::run::{Outcome, cargo, root, show};
use crate::{examples, licences, readme, sdks};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A stage: its name, the minutes it may take on two cores, and what it does.
type Stage = (&'static str, u64, fn() -> Outcome);

const STAGES: [Stage; 5] = [
    ("build", 14, build),
    ("unit and simulation", 6, units),
    ("stores", 6, stores),
    ("SDKs and API", 5, api),
    ("rest", 5, lint),
];

/// What the workspace has but does not turn on by itself.
pub(crate) const FEATURES: &str = "--features=aldaba-client/apalis";

/// How many requests schemathesis makes up for each operation within the tests.
const EXAMPLES: &str = "10";

/// Runs every stage; the first failure ends it. The minutes are printed either way.
pub(crate) fn test() -> Outcome {
    let mut report = Vec::new();
    let mut outcome = Ok(());
    for (name, budget, run) in STAGES {
        println!("\n=== {name}");
        let (took, result) = timed(run);
        let minutes = took.as_secs_f64() / 60.0;
        report.push(format!("{name:<22}{minutes:>6.1} min of {budget}"));
        if result.is_err() {
            outcome = result;
            break;
        }
    }
    println!("\n{}", report.join("\n"));
    outcome
}

#[expect(clippy::disallowed_methods, reason = "a stopwatch for people; nothing is decided by it")]
fn timed(run: fn() -> Outcome) -> (Duration, Outcome) {
    let started = std::time::Instant::now();
    let outcome = run();
    (started.elapsed(), outcome)
}

fn build() -> Outcome {
    show(&mut cargo(&["build", "--workspace", "--all-targets", "--locked", FEATURES]))?;
    sdks::build()?;
    examples::build()?;
    light_build()
}

fn light_server() -> PathBuf {
    root().join("target/ci/aldaba")
}

/// The server and the example receiver, in the profile of the black-box tests.
fn light_build() -> Outcome {
    let what = ["--package", "aldaba", "--bins", "--example", "receiver"];
    show(cargo(&["build", "--profile", "ci", "--locked"]).args(what))
}

fn units() -> Outcome {
    let pure =
        ["--package", "aldaba-delivery", "--package", "aldaba-signature", "--package", "aldaba-engine"];
    let embedded = ["--package", "aldaba-embedded"];
    let tools = ["--package", "simulation", "--package", "bench", "--package", "xtask"];
    show(cargo(&["test", "--locked"]).args(pure).args(embedded).args(tools))
}

fn stores() -> Outcome {
    show(&mut cargo(&["test", "--locked", "--package", "aldaba-store"]))
}

fn api() -> Outcome {
    show(&mut cargo(&["test", "--locked", "--package", "aldaba", "--package", "aldaba-client", FEATURES]))?;
    readme::run(&light_server())?;
    sdks::run(&light_server(), &[])?;
    examples::run(&light_server())?;
    sdks::schemathesis(&light_server(), EXAMPLES, &[])
}

/// Formatting, lints, licences.
pub(crate) fn lint() -> Outcome {
    show(&mut cargo(&["fmt", "--all", "--check"]))?;
    show(&mut cargo(&["fmt", "--manifest-path", "sdks/rust/Cargo.toml", "--check"]))?;
    let clippy = ["clippy", "--workspace", "--all-targets", "--locked", FEATURES, "--", "--deny", "warnings"];
    show(&mut cargo(&clippy))?;
    examples::lint()?;
    show(
        cargo(&["doc", "--workspace", "--no-deps", "--locked", "--document-private-items", FEATURES])
            .env("RUSTDOCFLAGS", "--deny warnings"),
    )?;
    licences::check()
}

pub(crate) fn readme() -> Outcome {
    light_build()?;
    readme::run(&light_server())
}

pub(crate) fn sdks(names: &[String]) -> Outcome {
    light_build()?;
    sdks::run(&light_server(), names)
}

pub(crate) fn examples() -> Outcome {
    light_build()?;
    examples::run(&light_server())
}

/// `--examples N`, and options of schemathesis.
pub(crate) fn schemathesis(arguments: &[String]) -> Outcome {
    light_build()?;
    match arguments {
        [flag, examples, more @ ..] if flag == "--examples" => {
            sdks::schemathesis(&light_server(), examples, more)
        }
        more => sdks::schemathesis(&light_server(), "100", more),
    }
}

pub(crate) fn simulate(seeds: &str) -> Outcome {
    let test = ["test", "--release", "--package", "simulation", "--test", "seeds", "--", "--nocapture"];
    show(cargo(&test).env("ALDABA_SEEDS", seeds))
}

pub(crate) fn kill(messages: &str) -> Outcome {
    show(black_box("kill").env("ALDABA_KILL_MESSAGES", messages))
}

/// Both are built on their own, so that the server is the one that users get.
pub(crate) fn bench(arguments: &[String]) -> Outcome {
    for package in ["aldaba", "bench"] {
        show(&mut cargo(&["build", "--release", "--locked", "--package", package, "--bins"]))?;
    }
    let built = root().join("target/release");
    let mut suite = Command::new(built.join("bench"));
    suite.arg("--server").arg(built.join("aldaba"));
    suite.arg("--document").arg(root().join("docs/performance.md"));
    show(suite.args(arguments))
}

pub(crate) fn schedules() -> Outcome {
    show(black_box("schedules").env("ALDABA_SCHEDULE_SECONDS", "60"))
}

fn black_box(test: &str) -> Command {
    cargo(&["test", "--release", "--package", "aldaba", "--test", test, "--", "--nocapture"])
}
