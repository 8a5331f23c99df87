//! Requests a second to all endpoints of an application together.
//!
//! Lanes that find the rate used up stand in one line for the next token. They are called in the order in which
//! they came: a lane that always has something new never gets ahead of the others.

use crate::scheduling::lane::{FixedMap, Throttle};
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// When those are looked at again who cannot go for another reason than the rate.
const BLOCKED_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The applications that have a rate and something to send.
#[derive(Default)]
pub(super) struct AppThrottles {
    of_app: FixedMap<AppId, AppThrottle>,
    alarms: BTreeSet<(Timestamp, AppId)>,
}

struct AppThrottle {
    throttle: Throttle,
    /// Lanes that wait, the first one first.
    line: VecDeque<EndpointId>,
    /// Since when there is always somebody in the line.
    since: Option<Timestamp>,
    /// When the next is to be called.
    alarm: Option<Timestamp>,
}

impl AppThrottles {
    /// Takes a token, if there is one, whoever stands in the line for it.
    pub(super) fn take(&mut self, app: AppId, rate: u16, now: Timestamp) -> bool {
        let of_app = self.of_app(app, rate, now);
        let ready = of_app.throttle.ready(now).is_ok();
        if ready {
            of_app.throttle.take(true);
        }
        ready
    }

    fn of_app(&mut self, app: AppId, rate: u16, now: Timestamp) -> &mut AppThrottle {
        let of_app = self.of_app.entry(app).or_insert_with(|| AppThrottle {
            throttle: Throttle::new(rate, now),
            line: VecDeque::new(),
            since: None,
            alarm: None,
        });
        if of_app.throttle.rate() != rate {
            of_app.throttle = Throttle::new(rate, now);
        }
        of_app
    }

    /// Whether a lane may have a turn now: then a token is taken for it. Else it stands in the line.
    pub(super) fn enter(&mut self, app: AppId, rate: u16, endpoint: EndpointId, now: Timestamp) -> bool {
        let of_app = self.of_app(app, rate, now);
        let ready = of_app.throttle.ready(now);
        if of_app.line.is_empty() && ready.is_ok() {
            of_app.throttle.take(true);
            return true;
        }
        of_app.line.push_back(endpoint);
        of_app.since.get_or_insert(now);
        self.call_at(app, ready.err().unwrap_or(now));
        false
    }

    /// The next in the line whose turn it is and who `can_go`, with a token taken for it.
    pub(super) fn next(
        &mut self,
        app: AppId,
        now: Timestamp,
        can_go: impl Fn(EndpointId) -> bool,
    ) -> Option<EndpointId> {
        let of_app = self.of_app.get_mut(&app)?;
        if of_app.line.is_empty() {
            of_app.since = None;
            return None;
        }
        if let Err(at) = of_app.throttle.ready(now) {
            self.call_at(app, at);
            return None;
        }
        match of_app.line.iter().position(|endpoint| can_go(*endpoint)) {
            Some(place) => {
                of_app.throttle.take(true);
                of_app.line.remove(place)
            }
            None => {
                self.call_at(app, now + BLOCKED_RETRY_DELAY);
                None
            }
        }
    }

    /// An application for which somebody is to be called now.
    pub(super) fn ring(&mut self, now: Timestamp) -> Option<AppId> {
        let &(at, app) = self.alarms.first().filter(|(at, _)| *at <= now)?;
        self.alarms.remove(&(at, app));
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.alarm = None;
        }
        Some(app)
    }

    pub(super) fn next_alarm(&self) -> Option<Timestamp> {
        self.alarms.first().map(|(at, _)| *at)
    }

    /// One was called; the next one follows as soon as the rate allows it.
    pub(super) fn call_again(&mut self, app: AppId, now: Timestamp) {
        let Some(of_app) = self.of_app.get_mut(&app) else { return };
        if of_app.line.is_empty() {
            of_app.since = None;
            return;
        }
        let at = of_app.throttle.ready(now).err().unwrap_or(now);
        self.call_at(app, at);
    }

    /// A token was of no use to its lane. Whoever is next may have it.
    pub(super) fn give_back(&mut self, app: AppId, now: Timestamp) {
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.throttle.give_back();
            if !of_app.line.is_empty() {
                self.call_at(app, now);
            }
        }
    }

    /// The request does not leave now: it has to wait for its payload, and asks again.
    pub(super) fn starts_later(&mut self, app: AppId) {
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.throttle.starts_later();
        }
    }

    /// Whether a request that had to wait for its payload may leave now, or when it may.
    pub(super) fn may_start(&mut self, app: AppId, now: Timestamp) -> Result<(), Timestamp> {
        self.of_app.get_mut(&app).map_or(Ok(()), |of_app| of_app.throttle.may_start(now))
    }

    pub(super) fn started(&mut self, app: AppId) {
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.throttle.started();
        }
    }

    /// When an application that somebody waits for may have its next request, and since when it is so.
    pub(super) fn held(&mut self, app: AppId, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let of_app = self.of_app.get_mut(&app)?;
        let until = of_app.throttle.ready(now).err().unwrap_or(now);
        of_app.since.map(|since| (since, until))
    }

    /// The application has another rate, or none: all in the line look again.
    pub(super) fn dissolve(&mut self, app: AppId) -> VecDeque<EndpointId> {
        let Some(of_app) = self.of_app.remove(&app) else { return VecDeque::new() };
        if let Some(at) = of_app.alarm {
            self.alarms.remove(&(at, app));
        }
        of_app.line
    }

    /// Forgets those that a new one would not be stricter than.
    pub(super) fn forget_idle(&mut self, now: Timestamp) {
        self.of_app.retain(|_, of_app| !of_app.line.is_empty() || !of_app.throttle.is_full(now));
    }

    fn call_at(&mut self, app: AppId, at: Timestamp) {
        let Some(of_app) = self.of_app.get_mut(&app) else { return };
        match of_app.alarm {
            Some(before) if before <= at => return,
            Some(before) => drop(self.alarms.remove(&(before, app))),
            None => {}
        }
        of_app.alarm = Some(at);
        self.alarms.insert((at, app));
    }
}
