use std::time::Duration;

/// An answer within this time lets a lane grow.
const QUICK: Duration = Duration::from_secs(1);

/// How many requests a lane may have on the wire at once. It grows while answers come quickly and
/// shrinks when they stay away.
#[derive(Debug)]
pub(crate) struct Pace {
    on_wire: usize,
    limit: usize,
    most: usize,
    answers: bool,
}

impl Pace {
    pub(crate) fn new(start: usize, most: usize) -> Self {
        Self { on_wire: 0, limit: start.min(most), most, answers: false }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.on_wire < self.limit
    }

    /// Whether the last attempt got an answer. A lane that has yet to show it counts as one that
    /// does not: black holes must not be able to fill the machine before they are known.
    pub(crate) fn answers(&self) -> bool {
        self.answers
    }

    pub(crate) fn started(&mut self) {
        self.on_wire += 1;
    }

    /// The request never left.
    pub(crate) fn called_off(&mut self) {
        self.on_wire -= 1;
    }

    pub(crate) fn answered(&mut self, took: Duration) {
        let was_full = self.on_wire >= self.limit;
        self.on_wire -= 1;
        self.answers = true;
        if was_full && took < QUICK {
            self.limit = (self.limit + 1).min(self.most);
        }
    }

    pub(crate) fn unanswered(&mut self) {
        self.on_wire -= 1;
        self.answers = false;
        self.limit = (self.limit / 2).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_grows_to_its_most_while_full_and_quick_and_is_halved_down_to_one() {
        let mut pace = Pace::new(8, 64);
        for _ in 0..1000 {
            while pace.has_room() {
                pace.started();
            }
            pace.answered(Duration::from_millis(5));
        }
        assert_eq!((pace.limit, pace.answers()), (64, true));
        for expected in [32, 16, 8, 4, 2, 1, 1] {
            pace.unanswered();
            assert_eq!((pace.limit, pace.answers()), (expected, false));
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
        assert_eq!(pace.limit, 8);
    }
}
