use aldaba_delivery::{AppId, OrgId, Timestamp};
use aldaba_store::{PortalExpiry, RevokedToken};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// How long a token that names a session counts, whatever it says itself: the end of a session need not be
/// remembered for longer.
pub const LONGEST_SESSION: Duration = Duration::from_secs(7 * 24 * 3600);

/// Signed tokens that count no longer. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Revocations(Arc<RwLock<Memory>>);

#[derive(Debug, Default)]
struct Memory {
    tokens: HashMap<[u8; 32], RevokedToken>,
    cuts: HashMap<AppId, Cuts>,
}

/// Those of an application, by session; `None`: those for all.
type Cuts = HashMap<Option<String>, Vec<PortalExpiry>>;

impl Revocations {
    /// How many revoked tokens of one organization are remembered at once.
    pub const MOST_TOKENS: usize = 100_000;
    /// How many ends of sessions one application may have at once.
    pub const MOST_CUTS: usize = 10_000;
    /// How many ends of all portal tokens of an application may be planned at once. One without a delay takes the
    /// place of all others, and is never too many.
    pub const MOST_DELAYED: usize = 100;

    pub fn is_revoked(&self, mark: &[u8; 32]) -> bool {
        self.0.read().tokens.contains_key(mark)
    }

    /// Whether a portal token has been ended.
    pub fn has_ended(
        &self,
        app: AppId,
        session: Option<&str>,
        issued_at: Option<Timestamp>,
        now: Timestamp,
    ) -> bool {
        let memory = self.0.read();
        memory.concerning(app, session).any(|cut| cut.ends(issued_at, now))
    }

    /// A token that is issued at this moment is not among those that were ended: a clock may have been set back
    /// since then.
    pub fn issue_at(&self, app: AppId, session: Option<&str>, now: Timestamp) -> Timestamp {
        let memory = self.0.read();
        let last = memory.concerning(app, session).map(|cut| cut.issued_before).max();
        last.map_or(now, |last| last.max(now))
    }

    /// The moment before which a new end takes all tokens that were issued until now: those of one session, or all of the
    /// application. After an end by a clock that was ahead, tokens are issued at the moment of that end ([`Self::issue_at`]),
    /// so the next end lies past it.
    pub(crate) fn end_before(&self, app: AppId, session: Option<&str>, now: Timestamp) -> Timestamp {
        let memory = self.0.read();
        let last = match session {
            Some(_) => memory.concerning(app, session).map(|cut| cut.issued_before).max(),
            None => memory
                .cuts
                .get(&app)
                .into_iter()
                .flat_map(HashMap::values)
                .flatten()
                .map(|cut| cut.issued_before)
                .max(),
        };
        last.map_or(now, |last| now.max(last + Duration::from_millis(1)))
    }

    /// Whether one more token of the organization can be remembered.
    pub(crate) fn has_room_for_token(&self, org: OrgId) -> bool {
        let memory = self.0.read();
        memory.tokens.len() < Self::MOST_TOKENS
            || memory.tokens.values().filter(|token| token.org == org).count() < Self::MOST_TOKENS
    }

    /// Whether so many more ends of sessions can be remembered.
    pub(crate) fn has_room_for_cuts(&self, app: AppId, more: usize) -> bool {
        let memory = self.0.read();
        let there = memory.cuts.get(&app).into_iter().flatten();
        let there: usize = there.filter(|(session, _)| session.is_some()).map(|(_, cuts)| cuts.len()).sum();
        there.saturating_add(more) <= Self::MOST_CUTS
    }

    /// Whether another end of all that comes later can be.
    pub(crate) fn has_room_for_delayed_cut(&self, app: AppId) -> bool {
        let memory = self.0.read();
        memory
            .cuts
            .get(&app)
            .and_then(|cuts| cuts.get(&None))
            .is_none_or(|cuts| cuts.len() < Self::MOST_DELAYED)
    }

    /// As it is on disk.
    pub fn add_token(&self, token: RevokedToken) {
        self.0.write().tokens.insert(token.mark, token);
    }

    /// As the store does it. Without a moment: as it was read.
    pub fn add_cut(&self, new: PortalExpiry, now: Option<Timestamp>) {
        let mut memory = self.0.write();
        let sessions = memory.cuts.entry(new.app).or_default();
        if let Some(now) = now {
            let concerning = [None, new.session.clone()];
            let mut there = concerning.iter().filter_map(|session| sessions.get(session)).flatten();
            if there.any(|old| old.covers(&new, now)) {
                return;
            }
            match new.session {
                None => sessions.values_mut().for_each(|cuts| cuts.retain(|old| !new.covers(old, now))),
                Some(_) => {
                    if let Some(cuts) = sessions.get_mut(&new.session) {
                        cuts.retain(|old| !new.covers(old, now));
                    }
                }
            }
            sessions.retain(|_, cuts| !cuts.is_empty());
        }
        sessions.entry(new.session.clone()).or_default().push(new);
    }

    pub(super) fn forget_token(&self, mark: &[u8; 32]) {
        self.0.write().tokens.remove(mark);
    }

    pub(super) fn forget_cut(&self, gone: &PortalExpiry) {
        let mut memory = self.0.write();
        let Some(sessions) = memory.cuts.get_mut(&gone.app) else { return };
        if let Some(cuts) = sessions.get_mut(&gone.session) {
            cuts.retain(|cut| cut != gone);
        }
        sessions.retain(|_, cuts| !cuts.is_empty());
        if sessions.is_empty() {
            memory.cuts.remove(&gone.app);
        }
    }

    pub(super) fn forget_application(&self, app: AppId) {
        self.0.write().cuts.remove(&app);
    }
}

impl Memory {
    /// Those that a token of an application is subject to.
    fn concerning(&self, app: AppId, session: Option<&str>) -> impl Iterator<Item = &PortalExpiry> {
        let cuts = self.cuts.get(&app);
        let of =
            move |session: Option<String>| cuts.and_then(|cuts| cuts.get(&session)).into_iter().flatten();
        let of_session = session.filter(|_| cuts.is_some()).map(|session| of(Some(session.to_owned())));
        of(None).chain(of_session.into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000 + seconds * 1000)
    }

    fn cut(session: Option<&str>, issued_before: i64, ends_at: i64) -> PortalExpiry {
        PortalExpiry {
            app: AppId::first_at(at(0)),
            session: session.map(Into::into),
            issued_before: at(issued_before),
            ends_at: at(ends_at),
            expires_at: None,
        }
    }

    #[test]
    fn a_cut_of_a_session_ends_no_other_and_one_for_all_ends_all() {
        let (revocations, app) = (Revocations::default(), AppId::first_at(at(0)));
        let ended = |session, issued| revocations.has_ended(app, session, Some(at(issued)), at(50));
        revocations.add_cut(cut(Some("ana"), 10, 10), Some(at(10)));
        assert!(ended(Some("ana"), 9));
        assert!(!ended(Some("ana"), 10) && !ended(Some("eva"), 9) && !ended(None, 9));
        revocations.add_cut(cut(None, 20, 20), Some(at(20)));
        assert!(ended(Some("ana"), 19) && ended(Some("eva"), 19) && ended(None, 19));
        assert!(!ended(None, 20));
        assert!(!revocations.has_ended(AppId::last_at(at(0)), None, None, at(50)), "another application's");
    }

    #[test]
    fn an_end_of_all_at_once_takes_the_place_of_all_others_and_leaves_room_for_more() {
        let (revocations, app) = (Revocations::default(), AppId::first_at(at(0)));
        for number in 0..Revocations::MOST_CUTS {
            revocations.add_cut(cut(Some(&number.to_string()), 10, 10), Some(at(10)));
        }
        assert!(!revocations.has_room_for_cuts(app, 1));
        assert!(revocations.has_room_for_delayed_cut(app), "sessions take no room from it");
        revocations.add_cut(cut(None, 20, 20), Some(at(20)));
        assert!(revocations.has_room_for_cuts(app, Revocations::MOST_CUTS));
        assert!(revocations.has_ended(app, Some("7"), Some(at(9)), at(21)), "what had ended stays so");
        for number in 0..100 {
            revocations.add_cut(cut(None, 30 + number, 5000 + number), Some(at(30 + number)));
        }
        assert!(!revocations.has_room_for_delayed_cut(app));
        revocations.add_cut(cut(None, 200, 200), Some(at(200)));
        assert!(revocations.has_room_for_delayed_cut(app));
    }

    #[test]
    fn what_is_issued_after_a_cut_counts_though_the_clock_was_set_back() {
        let (revocations, app) = (Revocations::default(), AppId::first_at(at(0)));
        revocations.add_cut(cut(None, 100, 100), Some(at(100)));
        let issued = revocations.issue_at(app, None, at(40));
        assert!(!revocations.has_ended(app, None, Some(issued), at(120)));
        assert_eq!(revocations.issue_at(app, None, at(140)), at(140));
    }

    #[test]
    fn a_new_end_takes_what_was_issued_after_one_by_a_clock_that_was_ahead() {
        let app = AppId::first_at(at(0));
        for ahead in [None, Some("ana")] {
            let revocations = Revocations::default();
            revocations.add_cut(cut(ahead, 3600, 3600), Some(at(3600)));
            let issued = revocations.issue_at(app, Some("ana"), at(5));
            assert!(!revocations.has_ended(app, Some("ana"), Some(issued), at(6)));
            for ended in [Some("ana"), None] {
                let before = revocations.end_before(app, ended, at(6));
                assert!(issued < before, "{ahead:?}, {ended:?}");
                let next = PortalExpiry { issued_before: before, ends_at: before, ..cut(ended, 0, 0) };
                revocations.add_cut(next, Some(at(6)));
                assert!(revocations.has_ended(app, Some("ana"), Some(issued), at(7)), "{ahead:?}, {ended:?}");
                let fresh = revocations.issue_at(app, Some("ana"), at(7));
                assert!(!revocations.has_ended(app, Some("ana"), Some(fresh), at(8)), "{ahead:?}, {ended:?}");
            }
        }
        let revocations = Revocations::default();
        revocations.add_cut(cut(Some("ana"), 3600, 3600), Some(at(3600)));
        assert_eq!(revocations.end_before(app, Some("eva"), at(6)), at(6), "another session's end");
        assert_eq!(
            revocations.end_before(AppId::last_at(at(0)), None, at(6)),
            at(6),
            "another application's"
        );
        assert_eq!(revocations.end_before(app, None, at(9000)), at(9000), "the clock has passed it");
    }
}
