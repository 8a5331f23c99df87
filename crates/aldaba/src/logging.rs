use crate::config::{Config, LogFormat};
use aldaba_store::panic_message;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fmt;
use std::io::IsTerminal;
use std::panic::PanicHookInfo;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::reload::Handle;

/// What is logged, which may change while the process runs.
pub(crate) struct LogFilter(Box<dyn Fn(EnvFilter) + Send>);

impl LogFilter {
    pub(crate) fn set(&self, log: &str) {
        (self.0)(filter(log));
    }
}

impl fmt::Debug for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LogFilter")
    }
}

/// Sends the log of the whole process to standard error. Called by the program, never by the
/// library: a test or another program brings its own.
pub(crate) fn start(config: &Config) -> LogFilter {
    let to_stderr = tracing_subscriber::fmt()
        .with_env_filter(filter(&config.log))
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    // An error here means that a log is running already, which is as good.
    let log = match config.log_format {
        LogFormat::Text => {
            let to_stderr = to_stderr.with_filter_reloading();
            let log = LogFilter(reloaded_by(to_stderr.reload_handle()));
            let _ = to_stderr.try_init();
            log
        }
        LogFormat::Json => {
            let to_stderr = to_stderr.json().with_filter_reloading();
            let log = LogFilter(reloaded_by(to_stderr.reload_handle()));
            let _ = to_stderr.try_init();
            log
        }
    };
    std::panic::set_hook(Box::new(log_panic));
    log
}

fn reloaded_by<S: 'static>(handle: Handle<EnvFilter, S>) -> Box<dyn Fn(EnvFilter) + Send> {
    // It fails only if the log is gone, with the process.
    Box::new(move |filter| drop(handle.reload(filter)))
}

/// The settings have checked it.
fn filter(log: &str) -> EnvFilter {
    EnvFilter::try_new(filter_text(log)).unwrap_or_else(|_| EnvFilter::new("info"))
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
