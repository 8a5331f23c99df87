//! The threads of the server: some deliver, others serve the API.

use rustix::process::{getpriority_process, setpriority_process};
use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

/// How much the API's threads yield when all processors are busy (a `nice` value; each step is about a fifth of the
/// share).
const NICE_STEP: i32 = 5;
const MAX_NICE: i32 = 19;

/// The threads that serve the API.
#[derive(Clone, Debug)]
pub struct Threads {
    /// For reading requests and responding to them.
    pub api: Handle,
    /// For accepting connections, or refusing them.
    pub accept: Handle,
}

impl Threads {
    /// Everything on the threads of the caller.
    pub fn one() -> Self {
        Self { api: Handle::current(), accept: Handle::current() }
    }
}

/// Makes the runtime for everything that happens to accepted messages.
pub(crate) fn engine() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().thread_name("aldaba-engine").build()
}

/// Makes the runtime for connections to the API. It is separate because a thousand requests that wait for a processor
/// would delay every step of every delivery. It yields because accepting costs less than delivering: with equal
/// priority, an overloaded server would accept ever more than it delivers.
pub(crate) fn api() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().thread_name("aldaba-api").on_thread_start(step_back).build()
}

/// Makes the runtime that accepts connections, separate from the API's: a connection that is refused because a
/// thousand requests wait must not wait behind them. One thread is enough for this little work.
pub(crate) fn accept() -> io::Result<Runtime> {
    let one = &mut Builder::new_multi_thread();
    one.worker_threads(1).enable_all().thread_name("aldaba-accept").on_thread_start(step_back).build()
}

/// Gives this thread the lowest priority, for commands that work beside a server.
pub(crate) fn yield_to_others() {
    let _ = setpriority_process(None, MAX_NICE);
}

/// On Linux a priority belongs to a thread. One that cannot be changed changes no result.
fn step_back() {
    let _ =
        getpriority_process(None).and_then(|own| setpriority_process(None, (own + NICE_STEP).min(MAX_NICE)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_threads_of_the_api_stand_back() {
        let before = getpriority_process(None).expect("a priority");
        let priority = |runtime: Runtime| {
            let task = runtime.spawn(async { getpriority_process(None).expect("a priority") });
            runtime.block_on(task).expect("no panic")
        };
        assert_eq!(priority(api().expect("a runtime")), (before + NICE_STEP).min(MAX_NICE));
        assert_eq!(priority(engine().expect("a runtime")), before);
    }
}
