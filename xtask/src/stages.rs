//! The checks, in stages with a time budget each.

use crate::run::{TaskResult, cargo, root, show};
use crate::{
    browser, contrib, documents, examples, licences, links, names, packaging, readme, recipes, sdks, sqlx,
    suites, tools,
};
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// A stage: its name, its time budget in minutes on two cores, and its function.
type Stage = (&'static str, u64, fn() -> TaskResult);

const STAGES: [Stage; 8] = [
    ("build", 14, build),
    ("unit and simulation", 6, units),
    ("stores and samples", 6, stores),
    ("SDKs and API", 5, api),
    ("Prometheus and mail", 3, observing),
    ("browser", 3, browser),
    ("packages and soak", 3, packages_and_soak),
    ("rest", 5, lint),
];

/// The optional features of the workspace.
pub(crate) const FEATURES: &str = "--features=aldaba-client/apalis,aldaba-receiver/axum,aldaba-receiver/postgres,aldaba-receiver/sqlite,aldaba-receiver/redis,aldaba-signature/http";

/// The build profile. It is defined in `.cargo/config.toml`.
pub(crate) const PROFILE: &str = "--profile=ci";

/// Requests that schemathesis generates for each operation within the tests.
const EXAMPLES: &str = "10";

/// Runs every stage until the first failure. Prints the minutes either way.
pub(crate) fn test() -> TaskResult {
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
fn timed(run: fn() -> TaskResult) -> (Duration, TaskResult) {
    let started = std::time::Instant::now();
    let outcome = run();
    (started.elapsed(), outcome)
}

fn build() -> TaskResult {
    tools::servers()?;
    suites::build()?;
    suites::programs()?;
    examples::build()?;
    sqlx::build()
}

/// The path of a program of the workspace.
pub(crate) fn program(name: &str) -> PathBuf {
    root().join("target/ci").join(name)
}

fn server() -> PathBuf {
    program("aldaba")
}

fn units() -> TaskResult {
    suites::run(&["aldaba-api", "aldaba-delivery", "aldaba-signature", "aldaba-engine", "aldaba-embedded"])?;
    suites::run(&["simulation", "bench", "xtask"])?;
    suites::documentation()
}

fn stores() -> TaskResult {
    suites::run(&["aldaba-store", "test-servers", "aldaba-receiver"])?;
    sqlx::test()?;
    examples::run(&server())
}

fn api() -> TaskResult {
    suites::run(&["aldaba", "aldaba-client"])?;
    readme::run(&server())?;
    recipes::run(&server(), &[])?;
    sdks::run(&server(), &[])?;
    sdks::schemathesis(&server(), EXAMPLES, &[])
}

/// What the server says of itself, to the real programs that listen. These tests are ignored elsewhere, because they need
/// programs of Debian.
pub(crate) fn observing() -> TaskResult {
    tools::prometheus()?;
    contrib::promtool()?;
    suites::run_ignored("aldaba", "observing")?;
    suites::run_ignored("aldaba", "outage")
}

/// The minutes of the soak within the tests: what leaks much is found, the rest by `cargo xtask soak`.
const SHORT_SOAK: &str = "1";

fn packages_and_soak() -> TaskResult {
    packaging::check(&server())?;
    show(Command::new(program("bench")).arg("--server").arg(server()).args(["--soak", SHORT_SOAK]))
}

fn browser() -> TaskResult {
    browser::run(&server(), &[])
}

pub(crate) fn browser_tests(names: &[String]) -> TaskResult {
    suites::programs()?;
    browser::run(&server(), names)
}

/// Names, formatting, requirements, links, lints and licences.
pub(crate) fn lint() -> TaskResult {
    documents::check()?;
    links::check()?;
    names::check()?;
    contrib::check()?;
    show(&mut cargo(&["fmt", "--all", "--check"]))?;
    show(suites::workspace("clippy").args(["--all-targets", "--", "--deny", "warnings"]))?;
    examples::lint()?;
    sqlx::lint()?;
    let documentation = ["--no-deps", "--document-private-items"];
    show(suites::workspace("doc").args(documentation).env("RUSTDOCFLAGS", "--deny warnings"))?;
    licences::check()
}

pub(crate) fn readme() -> TaskResult {
    suites::programs()?;
    readme::run(&server())
}

/// Runs the recipes whose page or heading has one of these words, or all.
pub(crate) fn recipes(words: &[String]) -> TaskResult {
    suites::programs()?;
    recipes::run(&server(), words)
}

pub(crate) fn sdks(names: &[String]) -> TaskResult {
    suites::programs()?;
    sdks::run(&server(), names)
}

pub(crate) fn examples() -> TaskResult {
    suites::programs()?;
    examples::run(&server())
}

/// Accepts `--examples N` and options of schemathesis.
pub(crate) fn schemathesis(arguments: &[String]) -> TaskResult {
    suites::programs()?;
    match arguments {
        [flag, examples, more @ ..] if flag == "--examples" => sdks::schemathesis(&server(), examples, more),
        more => sdks::schemathesis(&server(), "100", more),
    }
}

pub(crate) fn simulate(seeds: &str) -> TaskResult {
    let test = [
        "test",
        "--release",
        "--package",
        "simulation",
        "--test",
        "seeds",
        "--test",
        "clocks",
        "--",
        "--nocapture",
    ];
    show(cargo(&test).env("ALDABA_SEEDS", seeds))
}

pub(crate) fn kill(messages: &str) -> TaskResult {
    show(black_box("kill").env("ALDABA_KILL_MESSAGES", messages))
}

/// Backups under load, and on a disk that gets full, which needs the right to mount one.
pub(crate) fn backups(count: &str) -> TaskResult {
    let mut tests = black_box("backup");
    tests.args(["--include-ignored", "under_load", "full_disk"]);
    show(tests.env("ALDABA_BACKUPS", count))
}

/// Trials of the transactional ledgers.
pub(crate) fn trials(count: &str) -> TaskResult {
    receiver_trials("crashes", "ALDABA_TRIALS", count)?;
    sqlx::trials(count)
}

/// Trials of the lease ledgers.
pub(crate) fn leases(count: &str) -> TaskResult {
    receiver_trials("lease_faults", "ALDABA_LEASE_TRIALS", count)
}

fn receiver_trials(test: &str, variable: &str, count: &str) -> TaskResult {
    tools::servers()?;
    let test = [
        "test",
        "--locked",
        "--package=aldaba-receiver",
        "--all-features",
        "--test",
        test,
        "--",
        "--nocapture",
    ];
    show(cargo(&test).env(variable, count))
}

pub(crate) fn inbound(events: &str) -> TaskResult {
    show(black_box("inbound").env("ALDABA_INBOUND_EVENTS", events))
}

/// Builds both packages separately, so that the server is the one that users get.
pub(crate) fn bench(arguments: &[String]) -> TaskResult {
    show(measure()?.args(arguments))
}

/// The rounds of `instructions`: two show the repeatability.
const ROUNDS: &str = "2";

/// Counts instructions per message, which do not depend on other load.
pub(crate) fn instructions(arguments: &[String]) -> TaskResult {
    tools::valgrind()?;
    let mut suite = measure()?;
    if !arguments.iter().any(|argument| argument == "--rounds") {
        suite.args(["--rounds", ROUNDS]);
    }
    show(suite.arg("--instructions").args(arguments))
}

/// The minutes of `soak`.
const SOAK: &str = "30";

/// Accepts a number of minutes, and `--write`.
pub(crate) fn soak(arguments: &[String]) -> TaskResult {
    let (minutes, more) = match arguments {
        [minutes, more @ ..] if !minutes.starts_with('-') => (minutes.as_str(), more),
        more => (SOAK, more),
    };
    let mut suite = benchmark()?;
    suite.arg("--document").arg(root().join("docs/reliability.md"));
    show(suite.args(["--soak", minutes]).args(more))
}

pub(crate) fn packages() -> TaskResult {
    suites::programs()?;
    packaging::check(&server())
}

pub(crate) fn container() -> TaskResult {
    suites::programs()?;
    packaging::check_container(&server())
}

/// The benchmark program, with the server built as users get it.
fn measure() -> Result<Command, String> {
    let mut suite = benchmark()?;
    suite.arg("--document").arg(root().join("docs/internals/performance.md"));
    Ok(suite)
}

/// The same without its document.
fn benchmark() -> Result<Command, String> {
    for package in ["aldaba", "bench"] {
        show(&mut cargo(&["build", "--release", "--locked", "--package", package, "--bins"]))?;
    }
    let built = root().join("target/release");
    let mut suite = Command::new(built.join("bench"));
    suite.arg("--server").arg(built.join("aldaba"));
    Ok(suite)
}

/// Scripted outages, watched by the server's alerts and by a real Prometheus.
pub(crate) fn alerts() -> TaskResult {
    tools::prometheus()?;
    show(suites::workspace("test").args(["--test", "outage", "--", "--ignored", "--nocapture"]))
}

pub(crate) fn schedules() -> TaskResult {
    show(black_box("schedules").env("ALDABA_SCHEDULE_SECONDS", "60"))
}

fn black_box(test: &str) -> Command {
    cargo(&["test", "--release", "--package", "aldaba", "--test", test, "--", "--nocapture"])
}
