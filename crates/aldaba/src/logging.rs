use crate::config::{Config, LogFormat};
use aldaba_store::panic_message;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use tracing_subscriber::EnvFilter;

/// Sends the log of the whole process to standard error. Called by the program, never by the
/// library: a test or another program brings its own.
pub(crate) fn start(config: &Config) {
    let filter = EnvFilter::try_new(filter_text(&config.log)).unwrap_or_else(|_| EnvFilter::new("info"));
    let to_stderr = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // An error here means that a log is running already, which is as good.
    let _ = match config.log_format {
        LogFormat::Text => to_stderr.try_init(),
        LogFormat::Json => to_stderr.json().try_init(),
    };
    std::panic::set_hook(Box::new(log_panic));
}

/// The HTTP/2 library logs paths and headers at its lower levels, so it stays above them unless the filter names it.
fn filter_text(log: &str) -> String {
    format!("h2=info,{log}")
}

/// As a line of the log, and without the values that a panic's message may hold.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let message = panic_message(panic.payload());
    let thread = std::thread::current();
    let backtrace = Backtrace::capture();
    let backtrace = (backtrace.status() == BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(location, message, thread = thread.name(), backtrace, "a bug: a panic");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_http2_library_logs_no_headers_unless_the_filter_names_it() {
        let most = |log: &str| {
            let filter = EnvFilter::try_new(filter_text(log)).unwrap().to_string();
            let mut parts: Vec<_> = filter.split(',').map(str::to_owned).collect();
            parts.sort_unstable();
            parts
        };
        assert_eq!(most("trace"), ["h2=info", "trace"]);
        assert_eq!(most("info,h2=trace"), ["h2=trace", "info"]);
    }
}
