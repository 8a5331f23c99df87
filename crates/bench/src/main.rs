//! The benchmark suite: the server as a process under load, alternating with a baseline.
//!
//! A case starts servers ([`server`]), creates tenants through the API ([`tenants`]), posts messages ([`load`]), reads
//! the arrivals ([`receiver`]) and reports a table of all rounds with its targets ([`report`]). `cargo xtask bench`
//! builds everything and runs it.

mod api;
mod background;
mod cases;
mod clock;
mod cores;
mod document;
mod flood;
mod hole;
mod http1;
mod instructions;
mod interrupt;
mod load;
mod name_server;
mod numbers;
mod past;
mod payload;
mod receiver;
mod report;
mod server;
mod soak;
mod suite;
mod tenants;

use clap::Parser;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::path::PathBuf;
use std::process::ExitCode;
use suite::Suite;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Result<T> = std::result::Result<T, Error>;

/// Measures the server and compares the results with the targets.
#[derive(Debug, Parser)]
#[command(name = "bench", after_help = cases::list())]
struct Arguments {
    /// The cases to run; all by default
    #[arg(value_parser = cases::named)]
    cases: Vec<&'static cases::Case>,
    /// Rounds of each case
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Scale of counts and times, for a quick run
    #[arg(long, default_value_t = 1.0, value_parser = scale)]
    scale: f64,
    /// Count instructions per message with callgrind instead; `--rounds` repeats it
    #[arg(long)]
    instructions: bool,
    /// Send a steady load for so many minutes instead, and fail unless what the server uses stays flat
    #[arg(long, value_name = "MINUTES", value_parser = minutes, conflicts_with_all = ["cases", "instructions"])]
    soak: Option<f64>,
    /// Write the tables of the measured cases into the document
    #[arg(long)]
    write: bool,
    /// The binary of the server
    #[arg(long, value_name = "FILE")]
    server: PathBuf,
    /// The document for `--write`
    #[arg(long, value_name = "FILE")]
    document: Option<PathBuf>,
}

fn scale(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(scale) if scale > 0.0 && scale <= 10.0 => Ok(scale),
        _ => Err("expected a number above 0, up to 10".into()),
    }
}

fn minutes(text: &str) -> std::result::Result<f64, String> {
    match text.parse() {
        Ok(minutes) if (0.25..=1440.0).contains(&minutes) => Ok(minutes),
        _ => Err("expected a number of minutes from 0.25 to 1440".into()),
    }
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the cases; returns whether every target was reached.
fn run(arguments: Arguments) -> Result<bool> {
    raise_limit()?;
    let Arguments { mut cases, rounds, scale, instructions, soak, write, server, document } = arguments;
    if cases.is_empty() {
        cases = cases::ALL.iter().collect();
    }
    let suite = Suite::new(server, rounds.into(), scale)?;
    interrupt::clean_up_at_signal(suite.folder().to_owned())?;
    if let Some(minutes) = soak {
        let found = soak::run(&suite, minutes)?;
        println!("{}", found.markdown());
        if write {
            found.write(&document.ok_or("--write needs --document")?)?;
        }
        return Ok(found.is_flat());
    }
    if instructions {
        let section = instructions::run(&suite, rounds.into())?;
        println!("{section}");
        if write {
            instructions::write(&document.ok_or("--write needs --document")?, &section)?;
        }
        return Ok(true);
    }
    let mut tables = Vec::new();
    let mut reached = true;
    for case in cases {
        // A failed case must not prevent the others.
        match (case.run)(&suite) {
            Ok(report) => {
                reached &= report.reached();
                let table = report.markdown(case.name);
                println!("{table}");
                tables.push((case.name, table));
            }
            Err(error) => {
                reached = false;
                eprintln!("{}: not measured: {error}", case.name);
            }
        }
    }
    if write {
        let document = document.ok_or("--write needs --document")?;
        let all: Vec<&str> = cases::ALL.iter().map(|case| case.name).collect();
        document::write(&document, &all, &tables)?;
    }
    Ok(reached)
}

/// Every connection of the load and of the receivers is a file descriptor of this process.
fn raise_limit() -> Result<()> {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    }
    Ok(())
}
