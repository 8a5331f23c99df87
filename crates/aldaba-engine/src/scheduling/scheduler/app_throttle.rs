//! The rate of an application: requests per second to all its endpoints together.
//!
//! Lanes that find the rate used up wait in one queue for the next token, in the order in which they came. So a lane that always
//! has something to send never gets ahead of the others.

use crate::scheduling::lane::{FixedMap, Throttle};
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// How long until lanes are tried again that another limit keeps from sending.
const BLOCKED_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The applications with a rate and something to send.
#[derive(Default)]
pub(super) struct AppThrottles {
    of_app: FixedMap<AppId, AppThrottle>,
    alarms: BTreeSet<(Timestamp, AppId)>,
}

struct AppThrottle {
    throttle: Throttle,
    /// Lanes that wait, in their order.
    queue: VecDeque<EndpointId>,
    /// Since when the queue has not been empty.
    since: Option<Timestamp>,
    /// When the next lane is served.
    alarm: Option<Timestamp>,
}

impl AppThrottles {
    /// Takes a token if there is one, even if lanes wait for it.
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
            queue: VecDeque::new(),
            since: None,
            alarm: None,
        });
        if of_app.throttle.rate() != rate {
            of_app.throttle = Throttle::new(rate, now);
        }
        of_app
    }

    /// Takes a token for a lane. `false`: there is none, and the lane enters the queue.
    pub(super) fn enter(&mut self, app: AppId, rate: u16, endpoint: EndpointId, now: Timestamp) -> bool {
        let of_app = self.of_app(app, rate, now);
        let ready = of_app.throttle.ready(now);
        if of_app.queue.is_empty() && ready.is_ok() {
            of_app.throttle.take(true);
            return true;
        }
        of_app.queue.push_back(endpoint);
        of_app.since.get_or_insert(now);
        self.serve_at(app, ready.err().unwrap_or(now));
        false
    }

    /// Takes the next lane that `can_go` from the queue, with a token for it.
    pub(super) fn next(
        &mut self,
        app: AppId,
        now: Timestamp,
        can_go: impl Fn(EndpointId) -> bool,
    ) -> Option<EndpointId> {
        let of_app = self.of_app.get_mut(&app)?;
        if of_app.queue.is_empty() {
            of_app.since = None;
            return None;
        }
        if let Err(at) = of_app.throttle.ready(now) {
            self.serve_at(app, at);
            return None;
        }
        match of_app.queue.iter().position(|endpoint| can_go(*endpoint)) {
            Some(index) => {
                of_app.throttle.take(true);
                of_app.queue.remove(index)
            }
            None => {
                self.serve_at(app, now + BLOCKED_RETRY_DELAY);
                None
            }
        }
    }

    /// An application with a lane to serve now.
    pub(super) fn next_due(&mut self, now: Timestamp) -> Option<AppId> {
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

    /// A lane was served; the next one follows as soon as the rate allows.
    pub(super) fn plan_next(&mut self, app: AppId, now: Timestamp) {
        let Some(of_app) = self.of_app.get_mut(&app) else { return };
        if of_app.queue.is_empty() {
            of_app.since = None;
            return;
        }
        let at = of_app.throttle.ready(now).err().unwrap_or(now);
        self.serve_at(app, at);
    }

    /// A lane has not used its token. The next lane may have it.
    pub(super) fn give_back(&mut self, app: AppId, now: Timestamp) {
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.throttle.give_back();
            if !of_app.queue.is_empty() {
                self.serve_at(app, now);
            }
        }
    }

    /// The request waits for its payload, and will ask again.
    pub(super) fn starts_later(&mut self, app: AppId) {
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.throttle.starts_later();
        }
    }

    /// Whether a request that had to wait for its payload may be sent now, or when it may.
    pub(super) fn may_start(&mut self, app: AppId, now: Timestamp) -> Result<(), Timestamp> {
        self.of_app.get_mut(&app).map_or(Ok(()), |of_app| of_app.throttle.may_start(now))
    }

    pub(super) fn started(&mut self, app: AppId) {
        if let Some(of_app) = self.of_app.get_mut(&app) {
            of_app.throttle.started();
        }
    }

    /// Since when lanes wait for the rate of an application, and when the next request may be sent.
    pub(super) fn held(&mut self, app: AppId, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let of_app = self.of_app.get_mut(&app)?;
        let until = of_app.throttle.ready(now).err().unwrap_or(now);
        of_app.since.map(|since| (since, until))
    }

    /// The application has another rate, or none. Returns the lanes that waited.
    pub(super) fn dissolve(&mut self, app: AppId) -> VecDeque<EndpointId> {
        let Some(of_app) = self.of_app.remove(&app) else { return VecDeque::new() };
        if let Some(at) = of_app.alarm {
            self.alarms.remove(&(at, app));
        }
        of_app.queue
    }

    /// Drops throttles without waiting lanes that are full again.
    pub(super) fn forget_idle(&mut self, now: Timestamp) {
        self.of_app.retain(|_, of_app| !of_app.queue.is_empty() || !of_app.throttle.is_full(now));
    }

    fn serve_at(&mut self, app: AppId, at: Timestamp) {
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
