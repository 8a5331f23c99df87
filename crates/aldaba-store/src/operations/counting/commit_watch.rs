//! Tells those who look at an organization that something of it was committed. While nobody looks, a commit reads one number.

use aldaba_delivery::OrgId;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

#[derive(Clone, Debug, Default)]
pub struct CommitWatch(Arc<Watched>);

#[derive(Debug, Default)]
struct Watched {
    watchers: AtomicUsize,
    /// The number of commits that concerned each.
    organizations: Mutex<HashMap<OrgId, watch::Sender<u64>>>,
}

/// Somebody who looks at an organization.
#[derive(Debug)]
pub struct CommitWatcher {
    watch: CommitWatch,
    org: OrgId,
    /// `None` only while it is dropped.
    commits: Option<watch::Receiver<u64>>,
}

impl CommitWatch {
    pub fn watch(&self, org: OrgId) -> CommitWatcher {
        let mut organizations = self.0.organizations.lock();
        self.0.watchers.fetch_add(1, Ordering::SeqCst);
        let commits = organizations.entry(org).or_insert_with(|| watch::channel(0).0).subscribe();
        CommitWatcher { watch: self.clone(), org, commits: Some(commits) }
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.0.watchers.load(Ordering::SeqCst) > 0
    }

    /// A commit concerned these, or everybody.
    pub(crate) fn tell(&self, concerns: impl Fn(OrgId) -> bool) {
        for (org, commits) in &*self.0.organizations.lock() {
            if concerns(*org) {
                commits.send_modify(|commits| *commits += 1);
            }
        }
    }
}

impl CommitWatcher {
    /// Resolves once something was committed since the last time, or since the watcher was made.
    pub async fn changed(&mut self) {
        if let Some(commits) = &mut self.commits
            && commits.changed().await.is_ok()
        {
            return;
        }
        std::future::pending::<()>().await;
    }
}

impl Drop for CommitWatcher {
    fn drop(&mut self) {
        let mut organizations = self.watch.0.organizations.lock();
        self.commits = None;
        if organizations.get(&self.org).is_some_and(|commits| commits.receiver_count() == 0) {
            organizations.remove(&self.org);
        }
        self.watch.0.watchers.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    fn org(number: u8) -> OrgId {
        OrgId::from_bytes([number; 20])
    }

    fn hears(watcher: &mut CommitWatcher) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        pin!(watcher.changed()).poll(&mut cx).is_ready()
    }

    #[test]
    fn a_watcher_hears_of_its_own_organization_once_for_many_commits() {
        let watch = CommitWatch::default();
        assert!(!watch.is_watched());
        let (mut one, mut other) = (watch.watch(org(1)), watch.watch(org(2)));
        assert!(!hears(&mut one), "nothing has happened yet");
        for _ in 0..3 {
            watch.tell(|concerned| concerned == org(1));
        }
        assert!(hears(&mut one));
        assert!(!hears(&mut one));
        assert!(!hears(&mut other));
    }

    #[test]
    fn nothing_stays_when_the_last_one_looks_away() {
        let watch = CommitWatch::default();
        let (one, two) = (watch.watch(org(1)), watch.watch(org(1)));
        drop(one);
        assert!(watch.is_watched() && watch.0.organizations.lock().len() == 1);
        drop(two);
        assert!(!watch.is_watched() && watch.0.organizations.lock().is_empty());
    }
}
