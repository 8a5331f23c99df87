use crate::config::{Config, LogFormat};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Sends the log of the whole process to standard error. Called by the program, never by the
/// library: a test or another program brings its own.
pub(crate) fn start(config: &Config) {
    let filter = EnvFilter::try_new(&config.log).unwrap_or_else(|_| EnvFilter::new("info"));
    let to_stderr = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // An error here means that a log is running already, and that one is as good.
    let _ = match config.log_format {
        LogFormat::Text => to_stderr.try_init(),
        LogFormat::Json => to_stderr.json().try_init(),
    };
}
