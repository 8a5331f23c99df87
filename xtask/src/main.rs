//! The commands of this repository: `cargo xtask <command>`.

mod background;
mod browser;
mod contrib;
#[cfg(test)]
mod dependents;
mod documents;
mod examples;
mod licences;
mod links;
mod markdown;
mod names;
mod packaging;
mod readme;
mod recipes;
mod run;
mod sdks;
mod sqlx;
mod stages;
mod suites;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask test         everything that CI checks, with minutes per stage
cargo xtask lint         formatting, names, clippy, links, licences, bans, sources
cargo xtask names        sizes of folders, names of types, retired words
cargo xtask links        relative links, and the source files that maps name
cargo xtask alerts       scripted outages, watched by our alerts and by a real Prometheus; installs Prometheus
cargo xtask contrib      Prometheus's rules and Grafana's dashboard in contrib/, written from the alert rules: [--check]
cargo xtask readme       runs the README's examples as written
cargo xtask recipes      runs the recipes of docs/recipes as written: [WORDS of their headings]
cargo xtask sdks         the official SDKs against a server: [python|python-1|javascript|rust|methods|traces ...] [--write]
cargo xtask examples     the programs under examples/ against a server
cargo xtask browser      the dashboard in a real Chromium, with axe-core: [NAMES of tests]; installs it
cargo xtask servers      installs the servers for tests: PostgreSQL, Redis
cargo xtask observing    what the server says of itself, against a real Prometheus; installs it
cargo xtask schemathesis generated requests from the API's document: [--examples N] [options of schemathesis]
cargo xtask simulate N   N seeds of the simulation (default 10,000)
cargo xtask kill N       kill -9 under load with N messages (default 2,000)
cargo xtask backups N    N backups under load, each restored and compared (default 20), and a full disk; needs unshare
cargo xtask trials N     kill -9 at six points, and 64 copies at once, N times each on every transactional ledger (default 200)
cargo xtask leases N     owners paused and killed, Redis paused and killed, N times each on every lease ledger (default 50)
cargo xtask inbound N    N webhooks of another sender, a fifth of them duplicates, with kill -9 meanwhile (default 20,000)
cargo xtask bench        the benchmark suite: [CASE...] [--rounds N] [--scale F] [--write]; --help lists the cases
cargo xtask instructions instructions per message, by valgrind's callgrind: [--rounds N] [--write]; installs valgrind
cargo xtask soak M       a steady load for M minutes (default 30), after which nothing may have grown: [--write]
cargo xtask schedules    a minute of every policy's schedule on a real wire
cargo xtask package      the Debian packages and the container's folder, from a release build: [image]
cargo xtask packages     the packages checked: sandbox, installed, upgraded, removed and purged; installs debootstrap
cargo xtask container    the container image built and run on a Debian that is made here; installs podman
cargo xtask advisories   known vulnerabilities in dependencies; needs cargo-audit and its database";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |default: &str| arguments.get(1).map_or(default, String::as_str).to_owned();
    let done = match arguments.first().map(String::as_str) {
        Some("test") => stages::test(),
        Some("lint") => stages::lint(),
        Some("names") => names::check(),
        Some("links") => links::check(),
        Some("alerts") => stages::alerts(),
        Some("contrib") => contrib::contrib(&arguments[1..]),
        Some("readme") => stages::readme(),
        Some("recipes") => stages::recipes(&arguments[1..]),
        Some("sdks") => stages::sdks(&arguments[1..]),
        Some("examples") => stages::examples(),
        Some("browser") => stages::browser_tests(&arguments[1..]),
        Some("servers") => tools::servers(),
        Some("observing") => stages::observing(),
        Some("schemathesis") => stages::schemathesis(&arguments[1..]),
        Some("simulate") => stages::simulate(&number("10000")),
        Some("kill") => stages::kill(&number("2000")),
        Some("backups") => stages::backups(&number("20")),
        Some("trials") => stages::trials(&number("200")),
        Some("leases") => stages::leases(&number("50")),
        Some("inbound") => stages::inbound(&number("20000")),
        Some("bench") => stages::bench(&arguments[1..]),
        Some("instructions") => stages::instructions(&arguments[1..]),
        Some("soak") => stages::soak(&arguments[1..]),
        Some("package") => packaging::package(&arguments[1..]),
        Some("packages") => stages::packages(),
        Some("container") => stages::container(),
        Some("schedules") => stages::schedules(),
        Some("advisories") => licences::advisories(),
        _ => Err(HELP.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
