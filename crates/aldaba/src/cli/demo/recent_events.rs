//! The last notable events; repeats are counted.

use std::collections::VecDeque;
use std::time::Duration;

/// Events that are kept.
const MAX_EVENTS: usize = 20;
/// A repeat of the same endpoint within this time is counted, not listed.
const REPEAT_WINDOW: Duration = Duration::from_secs(5);

/// A notable event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecentEvent {
    /// When it was first seen.
    pub(super) begun: Duration,
    who: &'static str,
    what: String,
    times: u32,
    /// The consequence, by the newest repeat.
    then: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct RecentEvents(VecDeque<RecentEvent>);

impl RecentEvents {
    pub(super) fn note(&mut self, at: Duration, who: &'static str, what: String, then: Option<String>) {
        let same = |line: &&mut RecentEvent| {
            line.who == who && line.what == what && at.saturating_sub(line.begun) < REPEAT_WINDOW
        };
        if let Some(line) = self.0.iter_mut().find(same) {
            (line.times, line.then) = (line.times + 1, then);
            return;
        }
        if self.0.len() == MAX_EVENTS {
            self.0.pop_front();
        }
        self.0.push_back(RecentEvent { begun: at, who, what, times: 1, then });
    }

    /// The newest `most`, the oldest of them first.
    pub(super) fn lines(&self, most: usize) -> Vec<RecentEvent> {
        self.0.iter().skip(self.0.len().saturating_sub(most)).cloned().collect()
    }
}

impl RecentEvent {
    pub(super) fn who(&self) -> &'static str {
        self.who
    }

    /// All but the moment and the name.
    pub(super) fn text(&self) -> String {
        let times = if self.times > 1 { format!(" (×{})", self.times) } else { String::new() };
        let then = self.then.as_ref().map(|then| format!(", {then}")).unwrap_or_default();
        format!("{}{times}{then}", self.what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_same_is_counted_while_it_is_fresh() {
        let mut recent_events = RecentEvents::default();
        let mut note = |at, then: &str| {
            recent_events.note(secs(at), "billing", "answered 503".into(), Some(then.into()));
        };
        note(1, "again in 1 s");
        note(2, "again in 2 s");
        note(9, "again in 4 s");
        recent_events.note(secs(9), "mailer", "answered 503".into(), None);
        let lines: Vec<_> = recent_events.lines(8).iter().map(|line| (line.who(), line.text())).collect();
        assert_eq!(
            lines,
            [
                ("billing", "answered 503 (×2), again in 2 s".to_owned()),
                ("billing", "answered 503, again in 4 s".to_owned()),
                ("mailer", "answered 503".to_owned()),
            ]
        );
    }

    #[test]
    fn only_the_newest_are_kept() {
        let mut recent_events = RecentEvents::default();
        for number in 0..100 {
            recent_events.note(secs(number), "shop", format!("news {number}"), None);
        }
        assert_eq!(recent_events.lines(1000).len(), MAX_EVENTS);
        assert_eq!(recent_events.lines(1)[0].text(), "news 99");
    }
}
