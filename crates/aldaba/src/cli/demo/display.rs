//! Shows the progress of the demo: on a terminal as a picture, else as lines.

use super::receiver::DemoContext;
use super::scenario::{Behaviour, ENDPOINT_COUNT, ENDPOINTS};
use super::screen::{LEGEND, LINE_LEGEND, Picture};
use super::terminal::{Terminal, write_out};
use super::{Error, SHOWN_EVENTS, flatten};
use crate::server::Failed;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

const REDRAW_INTERVAL: Duration = Duration::from_millis(250);
const LINE_INTERVAL: Duration = Duration::from_secs(1);

/// The signals that stop the demo. A closed terminal is one too, so that the temporary folder is removed.
#[derive(Debug)]
pub(super) struct StopSignals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    resized: Signal,
}

impl StopSignals {
    pub(super) fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
            resized: signal(SignalKind::window_change())?,
        })
    }
}

#[derive(Debug)]
pub(super) struct LiveDisplay {
    stop_signals: StopSignals,
    context: DemoContext,
    rate: u64,
    address: SocketAddr,
    terminal: Option<Terminal>,
    behaviours: [Behaviour; ENDPOINT_COUNT],
    pub(super) hint: String,
    /// The reader of our output has gone: nothing more is shown, and the demo ends.
    output_closed: bool,
}

impl LiveDisplay {
    pub(super) fn new(
        stop_signals: StopSignals,
        context: DemoContext,
        rate: u64,
        address: SocketAddr,
        variables: &BTreeMap<String, String>,
    ) -> Self {
        let terminal = Terminal::find(variables);
        let behaviours = ENDPOINTS.each_ref().map(|script| script.behaviour(Duration::ZERO).0);
        Self {
            stop_signals,
            context,
            rate,
            address,
            terminal,
            behaviours,
            hint: String::new(),
            output_closed: false,
        }
    }

    /// The legend of the display.
    pub(super) fn legend(&self) -> &'static [&'static str] {
        if self.terminal.is_some() { &LEGEND } else { &LINE_LEGEND }
    }

    /// Text that stays.
    pub(super) fn say(&mut self, text: &str) {
        self.output_closed |= write_out(text).is_err();
    }

    /// Shows until the time is over or a signal arrives. An error: the server has failed.
    pub(super) async fn until(
        &mut self,
        time: Option<Duration>,
        ended: &mut JoinHandle<Result<(), Failed>>,
    ) -> Result<(), Error> {
        let over = async {
            match time {
                Some(time) => sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::pin!(over);
        let mut ticks = interval(if self.terminal.is_some() { REDRAW_INTERVAL } else { LINE_INTERVAL });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        if self.terminal.is_none() {
            // The first tick comes at once, when there is nothing to show.
            ticks.tick().await;
        }
        while !self.output_closed {
            tokio::select! {
                biased;
                ended = &mut *ended => return flatten(ended),
                _ = self.stop_signals.interrupt.recv() => break,
                _ = self.stop_signals.terminate.recv() => break,
                _ = self.stop_signals.hang_up.recv() => break,
                () = &mut over => break,
                _ = self.stop_signals.resized.recv() => {
                    if let Some(terminal) = &mut self.terminal {
                        self.output_closed |= terminal.measure_again().is_err();
                    }
                }
                _ = ticks.tick() => self.tick(None),
            }
        }
        Ok(())
    }

    /// One step of the wait at the end. `Break`: a second signal.
    pub(super) async fn waits(
        &mut self,
        left: Duration,
        ended: &mut JoinHandle<Result<(), Failed>>,
    ) -> Result<ControlFlow<()>, Error> {
        if self.output_closed {
            return Ok(ControlFlow::Break(()));
        }
        if self.terminal.is_some() {
            self.tick(Some(left));
        }
        tokio::select! {
            biased;
            ended = &mut *ended => flatten(ended).map(|()| ControlFlow::Break(())),
            _ = self.stop_signals.interrupt.recv() => Ok(ControlFlow::Break(())),
            _ = self.stop_signals.terminate.recv() => Ok(ControlFlow::Break(())),
            () = sleep(REDRAW_INTERVAL) => Ok(ControlFlow::Continue(())),
        }
    }

    /// The last picture, and the texts below it.
    pub(super) fn finish(&mut self, summary: &str, next_steps: &str) {
        self.tick(Some(Duration::ZERO));
        // Gives the cursor back.
        self.terminal = None;
        self.say(&format!("\n{summary}{next_steps}"));
    }

    fn tick(&mut self, ending: Option<Duration>) {
        let picture = self.picture(ending);
        let shown = match &mut self.terminal {
            Some(terminal) => {
                let lines = picture.lines(terminal.size, terminal.style);
                terminal.draw(&lines)
            }
            None => write_out(&format!("{}\n", picture.plain())),
        };
        self.output_closed |= shown.is_err();
    }

    fn picture(&mut self, ending: Option<Duration>) -> Picture {
        let now = self.context.clock.monotonic();
        let behaviours = ENDPOINTS.each_ref().map(|script| script.behaviour(now));
        let mut counters = self.context.counters.lock();
        for (lane, (behaviour, _)) in behaviours.iter().enumerate() {
            if std::mem::replace(&mut self.behaviours[lane], *behaviour) != *behaviour {
                counters.recent_events.note(now, ENDPOINTS[lane].name, behaviour.announcement(), None);
            }
        }
        Picture {
            address: format!("http://{}", self.address),
            elapsed: now,
            rate: self.rate,
            totals: counters.totals(),
            behaviours,
            rows: counters.rows(now),
            recent_events: counters.recent_events.lines(SHOWN_EVENTS),
            hint: self.hint.clone(),
            ending,
        }
    }
}
