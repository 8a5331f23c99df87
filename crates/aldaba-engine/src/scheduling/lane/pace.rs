use std::time::Duration;

/// A lane whose last answer came within this time is responsive.
const RESPONSIVE_WITHIN: Duration = Duration::from_secs(1);

/// How many requests a lane may have in flight. The limit grows while answers come quickly, and is halved by each request
/// without an answer.
#[derive(Debug)]
pub(crate) struct Pace {
    on_wire: u32,
    limit: u32,
    max: u32,
    lane_class: LaneClass,
}

/// The group of a lane by its recent answers. It decides how much of the in-flight limit the lane may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaneClass {
    /// The last answer came quickly.
    Responsive,
    /// No attempt has ended yet.
    New,
    /// The last answer came late, or not at all. Requests to such a receiver are in flight for long.
    Slow,
}

impl LaneClass {
    pub(crate) const ALL: [Self; 3] = [Self::Responsive, Self::New, Self::Slow];
}

impl Pace {
    pub(crate) fn new(start: usize, max: usize) -> Self {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        let limit = u32::try_from(start).unwrap_or(u32::MAX).min(max);
        Self { on_wire: 0, limit, max, lane_class: LaneClass::New }
    }

    pub(crate) fn has_capacity(&self) -> bool {
        self.on_wire < self.limit
    }

    /// Starts again with one request at a time.
    pub(crate) fn restart(&mut self) {
        self.limit = 1;
    }

    pub(crate) fn lane_class(&self) -> LaneClass {
        self.lane_class
    }

    pub(crate) fn started(&mut self) {
        self.on_wire += 1;
    }

    /// The attempt said nothing about the receiver.
    pub(crate) fn abandoned(&mut self) {
        self.on_wire -= 1;
    }

    pub(crate) fn answered(&mut self, took: Duration) {
        let was_full = self.on_wire >= self.limit;
        self.on_wire -= 1;
        self.lane_class = if took < RESPONSIVE_WITHIN { LaneClass::Responsive } else { LaneClass::Slow };
        if was_full && took < RESPONSIVE_WITHIN {
            self.limit = (self.limit + 1).min(self.max);
        }
    }

    pub(crate) fn unanswered(&mut self) {
        self.on_wire -= 1;
        self.lane_class = LaneClass::Slow;
        self.limit = (self.limit / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_grows_to_its_maximum_while_full_and_quick_and_is_halved_down_to_one() {
        let mut pace = Pace::new(8, 64);
        for _ in 0..1000 {
            while pace.has_capacity() {
                pace.started();
            }
            pace.answered(Duration::from_millis(5));
        }
        assert_eq!((pace.limit, pace.lane_class()), (64, LaneClass::Responsive));
        for expected in [32, 16, 8, 4, 2, 1, 1] {
            pace.unanswered();
            assert_eq!((pace.limit, pace.lane_class()), (expected, LaneClass::Slow));
        }
    }

    #[test]
    fn slow_answers_and_idle_lanes_do_not_grow() {
        let mut pace = Pace::new(8, 64);
        pace.started();
        pace.answered(Duration::from_millis(5));
        for _ in 0..8 {
            pace.started();
        }
        pace.answered(Duration::from_secs(2));
        assert_eq!((pace.limit, pace.lane_class()), (8, LaneClass::Slow));
    }
}
