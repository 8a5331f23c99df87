//! The threads of the server: some deliver, others serve the API.

use rustix::process::{getpriority_process, setpriority_process};
use std::io;
use tokio::runtime::{Builder, Handle, Runtime};

/// How far the threads of the API stand back when the processors are all busy (a `nice` value; each step
/// is about a fifth of the share).
const STEP_BACK: i32 = 5;
const LOWEST: i32 = 19;

/// Who serves the API.
#[derive(Clone, Debug)]
pub struct Threads {
    /// Reads requests and answers them.
    pub api: Handle,
    /// Accepts connections, or turns them away.
    pub accept: Handle,
}

impl Threads {
    /// Everything on the threads of the caller.
    pub fn one() -> Self {
        Self { api: Handle::current(), accept: Handle::current() }
    }
}

/// For everything that happens to what was accepted.
pub(crate) fn engine() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().thread_name("aldaba-engine").build()
}

/// For connections to the API. They are apart because a thousand requests that wait for a processor would
/// stand before every step of every delivery; and they give way because accepting costs less than
/// delivering: side by side, a server with more to do than it can would accept ever more than it
/// delivers.
pub(crate) fn api() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().thread_name("aldaba-api").on_thread_start(step_back).build()
}

/// For the door of the API, apart from it: whoever has to be turned away because a thousand requests wait
/// must not wait behind them. It does so little that one thread is enough.
pub(crate) fn accept() -> io::Result<Runtime> {
    let one = &mut Builder::new_multi_thread();
    one.worker_threads(1).enable_all().thread_name("aldaba-accept").on_thread_start(step_back).build()
}

/// On Linux a priority belongs to a thread. One that cannot be changed changes no result.
fn step_back() {
    let _ =
        getpriority_process(None).and_then(|own| setpriority_process(None, (own + STEP_BACK).min(LOWEST)));
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
        assert_eq!(priority(api().expect("a runtime")), (before + STEP_BACK).min(LOWEST));
        assert_eq!(priority(engine().expect("a runtime")), before);
    }
}
