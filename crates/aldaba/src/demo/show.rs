//! Shows how things stand until the demo is over: on a terminal as a picture, else as lines.

use super::receiver::Stage;
use super::scene::{CAST, LANES, Mood};
use super::screen::{LEGEND, LINE_LEGEND, Picture};
use super::terminal::{Terminal, write_out};
use super::{Error, LATELY, flatten};
use crate::server::Failed;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, sleep};

const PICTURES: Duration = Duration::from_millis(250);
const LINES: Duration = Duration::from_secs(1);

/// The ways in which the demo is asked to stop. A closed terminal is one too, so that the temporary
/// folder goes.
#[derive(Debug)]
pub(super) struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    resized: Signal,
}

impl Stops {
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
pub(super) struct Show {
    stops: Stops,
    stage: Stage,
    rate: u64,
    address: SocketAddr,
    terminal: Option<Terminal>,
    moods: [Mood; LANES],
    pub(super) hint: String,
    /// The reader of our output has gone: nothing more is shown, and the demo ends.
    unread: bool,
}

impl Show {
    pub(super) fn new(
        stops: Stops,
        stage: Stage,
        rate: u64,
        address: SocketAddr,
        variables: &BTreeMap<String, String>,
    ) -> Self {
        let terminal = Terminal::find(variables);
        let moods = CAST.each_ref().map(|actor| actor.mood(Duration::ZERO).0);
        Self { stops, stage, rate, address, terminal, moods, hint: String::new(), unread: false }
    }

    /// What explains that which will be shown.
    pub(super) fn legend(&self) -> &'static [&'static str] {
        if self.terminal.is_some() { &LEGEND } else { &LINE_LEGEND }
    }

    /// Text that stays.
    pub(super) fn say(&mut self, text: &str) {
        self.unread |= write_out(text).is_err();
    }

    /// Shows until the time is over or somebody wants it to stop. An error: the server has failed.
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
        let mut ticks = interval(if self.terminal.is_some() { PICTURES } else { LINES });
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        if self.terminal.is_none() {
            // The first one comes at once, when there is nothing to say yet.
            ticks.tick().await;
        }
        while !self.unread {
            tokio::select! {
                biased;
                ended = &mut *ended => return flatten(ended),
                _ = self.stops.interrupt.recv() => break,
                _ = self.stops.terminate.recv() => break,
                _ = self.stops.hang_up.recv() => break,
                () = &mut over => break,
                _ = self.stops.resized.recv() => {
                    if let Some(terminal) = &mut self.terminal {
                        self.unread |= terminal.measure_again().is_err();
                    }
                }
                _ = ticks.tick() => self.tick(None),
            }
        }
        Ok(())
    }

    /// One step of the wait at the end. `Break`: asked to stop a second time.
    pub(super) async fn waits(
        &mut self,
        left: Duration,
        ended: &mut JoinHandle<Result<(), Failed>>,
    ) -> Result<ControlFlow<()>, Error> {
        if self.unread {
            return Ok(ControlFlow::Break(()));
        }
        if self.terminal.is_some() {
            self.tick(Some(left));
        }
        tokio::select! {
            biased;
            ended = &mut *ended => flatten(ended).map(|()| ControlFlow::Break(())),
            _ = self.stops.interrupt.recv() => Ok(ControlFlow::Break(())),
            _ = self.stops.terminate.recv() => Ok(ControlFlow::Break(())),
            () = sleep(PICTURES) => Ok(ControlFlow::Continue(())),
        }
    }

    /// The last picture, and what remains to be said below it.
    pub(super) fn finish(&mut self, summary: &str, how_to_go_on: &str) {
        self.tick(Some(Duration::ZERO));
        // Gives the cursor back.
        self.terminal = None;
        self.say(&format!("\n{summary}{how_to_go_on}"));
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
        self.unread |= shown.is_err();
    }

    fn picture(&mut self, ending: Option<Duration>) -> Picture {
        let now = self.stage.clock.monotonic();
        let moods = CAST.each_ref().map(|actor| actor.mood(now));
        let mut tally = self.stage.tally.lock();
        for (lane, (mood, _)) in moods.iter().enumerate() {
            if std::mem::replace(&mut self.moods[lane], *mood) != *mood {
                tally.lately.tell(now, CAST[lane].name, mood.announcement(), None);
            }
        }
        Picture {
            address: format!("http://{}", self.address),
            elapsed: now,
            rate: self.rate,
            totals: tally.totals(),
            moods,
            rows: tally.rows(now),
            lately: tally.lately.lines(LATELY),
            hint: self.hint.clone(),
            ending,
        }
    }
}
