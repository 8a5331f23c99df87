//! Large bodies are looked at aside, in turns by organization, and of each by source: whoever sends many to one source, or to
//! many of one organization, makes no other wait for more than one of them.

use crate::aside::Aside;
use aldaba_delivery::{OrgId, SourceId};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Large bodies of one source that wait or are looked at. More are sent away: they would hold memory for long.
const MOST_OF_A_SOURCE: usize = 32;

/// Clones share what they hold.
#[derive(Clone, Debug)]
pub(crate) struct Looking {
    aside: Aside,
    sources: Lines<SourceId>,
    /// The first of the lines of its sources stand in an organization's.
    organizations: Lines<OrgId>,
}

impl Looking {
    pub(crate) fn new(aside: Aside) -> Self {
        // An organization that is alone may use all the places there are; once another comes, that one is the next.
        let places = aside.places();
        Self {
            aside,
            sources: Lines::new(1, MOST_OF_A_SOURCE),
            organizations: Lines::new(places, usize::MAX),
        }
    }

    /// `None`: too many of this source wait already. A turn lasts until its work is done, also where nobody waits for it
    /// any more.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        (org, source): (OrgId, SourceId),
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let of_source = self.sources.line_up(source)?.turn().await;
        let of_organization = self.organizations.line_up(org)?.turn().await;
        let work = move || {
            let done = work();
            drop((of_organization, of_source));
            done
        };
        Some(self.aside.run(work).await)
    }
}

/// Lines of those who wait for the same, by whose they are. Clones share what they hold.
#[derive(Debug)]
struct Lines<K> {
    /// How many of one line have their turn at the same time.
    turns: usize,
    /// How many may stand in one, with those who have their turn.
    most: usize,
    lines: Arc<Mutex<HashMap<K, Line>>>,
}

#[derive(Debug)]
struct Line {
    turns: Arc<Semaphore>,
    length: usize,
}

impl<K: Copy + Eq + Hash> Lines<K> {
    fn new(turns: usize, most: usize) -> Self {
        Self { turns, most, lines: Arc::default() }
    }

    /// `None`: the line is too long.
    fn line_up(&self, whose: K) -> Option<Place<K>> {
        let mut lines = self.lines.lock();
        let new = || Line { turns: Arc::new(Semaphore::new(self.turns)), length: 0 };
        let line = lines.entry(whose).or_insert_with(new);
        if line.length >= self.most {
            return None;
        }
        line.length += 1;
        Some(Place { turns: line.turns.clone(), lines: self.lines.clone(), whose })
    }
}

impl<K> Clone for Lines<K> {
    fn clone(&self) -> Self {
        Self { turns: self.turns, most: self.most, lines: self.lines.clone() }
    }
}

/// A place in a line, given up when this is dropped.
struct Place<K: Eq + Hash> {
    turns: Arc<Semaphore>,
    lines: Arc<Mutex<HashMap<K, Line>>>,
    whose: K,
}

impl<K: Eq + Hash> Place<K> {
    /// Waits for the turn of this place. Both end together.
    async fn turn(self) -> (Option<OwnedSemaphorePermit>, Self) {
        (self.turns.clone().acquire_owned().await.ok(), self)
    }
}

impl<K: Eq + Hash> Drop for Place<K> {
    fn drop(&mut self) {
        let mut lines = self.lines.lock();
        if let Some(line) = lines.get_mut(&self.whose) {
            line.length -= 1;
            if line.length == 0 {
                lines.remove(&self.whose);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// A source of an organization.
    fn source(org: u8, number: u8) -> (OrgId, SourceId) {
        (OrgId::from_bytes([org; 20]), SourceId::from_bytes([number; 20]))
    }

    #[tokio::test]
    async fn a_flooded_source_makes_another_wait_for_one_body_and_not_for_all() {
        let looking = Looking::new(Aside::of(1));
        let (end, ended) = mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let note = |number: u8| {
            let order = order.clone();
            move || order.lock().push(number)
        };
        let mut tasks = Vec::new();
        let mut start = |number: u8, work: Box<dyn FnOnce() + Send>| {
            let looking = looking.clone();
            tasks.push(tokio::spawn(async move { looking.run(source(1, number), work).await }));
        };
        start(1, Box::new(move || _ = ended.recv()));
        for _ in 1..MOST_OF_A_SOURCE {
            start(1, Box::new(note(1)));
        }
        tokio::task::yield_now().await;
        start(2, Box::new(note(2)));
        while looking.sources.lines.lock().len() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(looking.run(source(1, 1), || ()).await, None, "no more of this one");
        end.send(()).unwrap();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Some(()));
        }
        let place = order.lock().iter().position(|number| *number == 2).unwrap();
        assert!(place <= 1, "it came {place} others later");
        assert!(looking.sources.lines.lock().is_empty(), "nothing is left of them");
    }

    #[tokio::test]
    async fn whoever_gives_up_leaves_the_line() {
        let looking = Looking::new(Aside::of(1));
        let (end, ended) = mpsc::channel::<()>();
        let first = tokio::spawn({
            let looking = looking.clone();
            async move { looking.run(source(1, 1), move || _ = ended.recv()).await }
        });
        let second = tokio::spawn({
            let looking = looking.clone();
            async move { looking.run(source(1, 1), || ()).await }
        });
        while looking.sources.lines.lock().get(&source(1, 1).1).is_none_or(|line| line.length < 2) {
            tokio::task::yield_now().await;
        }
        second.abort();
        assert!(second.await.is_err());
        assert_eq!(looking.sources.lines.lock()[&source(1, 1).1].length, 1);
        end.send(()).unwrap();
        assert_eq!(first.await.unwrap(), Some(()));
        assert!(looking.sources.lines.lock().is_empty());
    }

    #[tokio::test]
    async fn an_organization_with_many_flooded_sources_makes_another_wait_for_one_body() {
        let looking = Looking::new(Aside::of(1));
        let (end, ended) = mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        let mut start = |whose: (OrgId, SourceId), work: Box<dyn FnOnce() + Send>| {
            let looking = looking.clone();
            tasks.push(tokio::spawn(async move { looking.run(whose, work).await }));
        };
        let note = |number: u8| {
            let order = order.clone();
            Box::new(move || order.lock().push(number))
        };
        start(source(1, 0), Box::new(move || _ = ended.recv()));
        (1..100).for_each(|number| start(source(1, number), note(1)));
        while looking.sources.lines.lock().len() < 100 {
            tokio::task::yield_now().await;
        }
        start(source(2, 200), note(2));
        while looking.organizations.lines.lock().len() < 2 {
            tokio::task::yield_now().await;
        }
        end.send(()).unwrap();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Some(()));
        }
        let place = order.lock().iter().position(|number| *number == 2).unwrap();
        assert!(place <= 1, "it came {place} others later");
        assert!(looking.organizations.lines.lock().is_empty(), "nothing is left of them");
    }

    #[tokio::test]
    async fn an_organization_that_is_alone_uses_all_the_places() {
        let looking = Looking::new(Aside::of(2));
        let both = Arc::new(std::sync::Barrier::new(2));
        let run = |number: u8| {
            let (looking, both) = (looking.clone(), both.clone());
            async move { looking.run(source(1, number), move || _ = both.wait()).await }
        };
        let both_ran = futures_util::future::join(run(1), run(2));
        let limit = std::time::Duration::from_secs(10);
        assert_eq!(tokio::time::timeout(limit, both_ran).await.unwrap(), (Some(()), Some(())));
    }
}
