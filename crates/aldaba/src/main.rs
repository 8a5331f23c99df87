//! The program: the only place that reads arguments and the environment.

use aldaba::cli::{self, Cli};
use clap::Parser;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    aldaba::allocator::give_back_soon();
    let cli = Cli::parse();
    let program = std::env::args().next().unwrap_or_else(|| "aldaba".into());
    // A variable that is no text cannot be one of ours.
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    cli::run(cli, &program, variables.collect())
}
