use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use aldaba_store::{Actor, ActorIdentity, ApiKey};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A use is noted again in memory after this time, so that a busy key is not written by every request.
const USE_APART: Duration = Duration::from_secs(60);
/// The same on disk.
const WRITTEN_APART: Duration = Duration::from_secs(3600);
const NEVER: i64 = i64::MIN;

/// All API keys. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Keys(Arc<RwLock<HashMap<[u8; 32], Arc<HeldKey>>>>);

/// One of them, ready for a request.
#[derive(Debug)]
pub struct HeldKey {
    key: ApiKey,
    actor: Arc<Actor>,
    /// When it was used, and what is on disk of that.
    used: AtomicI64,
    written: AtomicI64,
}

impl HeldKey {
    fn new(key: ApiKey, used: i64) -> Self {
        let written = key.last_used_at.map_or(NEVER, Timestamp::millis);
        let who = ActorIdentity::Key { id: key.id, prefix: key.prefix.clone(), name: key.name.clone() };
        let actor = Arc::new(Actor { org: key.org, identity: who });
        Self { key, actor, used: AtomicI64::new(used.max(written)), written: AtomicI64::new(written) }
    }

    pub fn key(&self) -> &ApiKey {
        &self.key
    }

    pub fn actor(&self) -> &Arc<Actor> {
        &self.actor
    }

    /// Notes that it was used, to about a minute.
    pub fn used(&self, now: Timestamp) {
        if is_apart(self.used.load(Ordering::Relaxed), now.millis(), USE_APART) {
            self.used.store(now.millis(), Ordering::Relaxed);
        }
    }

    /// As it is now.
    fn shown(&self) -> ApiKey {
        let used = self.used.load(Ordering::Relaxed);
        let last_used_at = (used != NEVER).then(|| Timestamp::from_millis(used));
        ApiKey { last_used_at, ..self.key.clone() }
    }
}

/// A clock that was set back moves no use back.
fn is_apart(before: i64, now: i64, by: Duration) -> bool {
    before == NEVER || now.saturating_sub(before) >= i64::try_from(by.as_millis()).unwrap_or(i64::MAX)
}

impl Keys {
    /// By the digest of a key's text. How long a lookup takes tells nothing: nobody can choose a digest.
    pub fn find(&self, digest: &[u8; 32]) -> Option<Arc<HeldKey>> {
        self.0.read().get(digest).cloned()
    }

    /// In the order of their creation.
    pub fn of_organization(&self, org: OrgId) -> Vec<ApiKey> {
        let mut keys: Vec<_> =
            self.0.read().values().filter(|held| held.key.org == org).map(|held| held.shown()).collect();
        keys.sort_by_key(|key| key.id);
        keys
    }

    pub fn get(&self, org: OrgId, id: ApiKeyId) -> Option<ApiKey> {
        let keys = self.0.read();
        keys.values().find(|held| held.key.id == id && held.key.org == org).map(|held| held.shown())
    }

    /// As it is on disk.
    pub fn put(&self, key: ApiKey) {
        self.0.write().insert(key.digest, Arc::new(HeldKey::new(key, NEVER)));
    }

    pub(super) fn rename(&self, id: ApiKeyId, name: String) {
        let mut keys = self.0.write();
        let Some(held) = keys.values().find(|held| held.key.id == id) else { return };
        let written = held.written.load(Ordering::Relaxed);
        let last_used_at = (written != NEVER).then(|| Timestamp::from_millis(written));
        let key = ApiKey { name, last_used_at, ..held.key.clone() };
        let renamed = HeldKey::new(key, held.used.load(Ordering::Relaxed));
        keys.insert(renamed.key.digest, Arc::new(renamed));
    }

    pub fn remove(&self, id: ApiKeyId) {
        self.0.write().retain(|_, held| held.key.id != id);
    }

    /// Those that are for one application alone, with that.
    pub(super) fn remove_of(&self, app: AppId) {
        self.0.write().retain(|_, held| held.key.app != Some(app));
    }

    /// Uses that are to be written now; `all`: whatever is not on disk.
    pub(super) fn unwritten(&self, all: bool) -> Vec<(ApiKeyId, Timestamp)> {
        let apart = if all { Duration::from_millis(1) } else { WRITTEN_APART };
        let is_due = |held: &&Arc<HeldKey>| {
            let used = held.used.load(Ordering::Relaxed);
            used != NEVER && is_apart(held.written.load(Ordering::Relaxed), used, apart)
        };
        let keys = self.0.read();
        let uses = keys.values().filter(is_due).map(|held| (held.key.id, held.used.load(Ordering::Relaxed)));
        let mut uses: Vec<_> = uses.map(|(id, used)| (id, Timestamp::from_millis(used))).collect();
        uses.sort_unstable();
        uses
    }

    pub(super) fn written(&self, uses: &[(ApiKeyId, Timestamp)]) {
        let keys = self.0.read();
        for held in keys.values() {
            if let Ok(place) = uses.binary_search_by_key(&held.key.id, |(id, _)| *id) {
                held.written.store(uses[place].1.millis(), Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_store::KeyScope;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_780_000_000_000 + seconds * 1000)
    }

    fn key(number: u8, org: OrgId) -> ApiKey {
        ApiKey {
            id: ApiKeyId::new(at(i64::from(number)), [number; 15]),
            org,
            app: None,
            name: format!("key {number}"),
            prefix: format!("prefix{number}"),
            digest: [number; 32],
            scope: KeyScope::Admin,
            created_at: at(0),
            expires_at: None,
            last_used_at: None,
        }
    }

    #[test]
    fn a_key_is_found_by_its_digest_until_it_is_removed() {
        let (org, keys) = (OrgId::first_at(at(0)), Keys::default());
        let (one, two) = (key(1, org), key(2, OrgId::last_at(at(0))));
        keys.put(two.clone());
        keys.put(one.clone());
        assert_eq!(keys.find(&[1; 32]).unwrap().key(), &one);
        assert_eq!(keys.of_organization(org), std::slice::from_ref(&one));
        assert_eq!(keys.get(org, two.id), None, "another organization's");
        keys.rename(one.id, "new".into());
        let found = keys.find(&[1; 32]).unwrap();
        assert_eq!(found.key().name, "new");
        assert!(matches!(&found.actor().identity, ActorIdentity::Key { name, .. } if name == "new"));
        keys.remove(one.id);
        assert!(keys.find(&[1; 32]).is_none());
    }

    #[test]
    fn uses_are_noted_now_and_then_and_written_rarely() {
        let (org, keys) = (OrgId::first_at(at(0)), Keys::default());
        let one = key(1, org);
        keys.put(one.clone());
        let (used, last) = (
            |seconds| keys.find(&[1; 32]).unwrap().used(at(seconds)),
            || keys.get(org, one.id).unwrap().last_used_at,
        );
        assert_eq!((last(), keys.unwritten(true)), (None, vec![]));
        used(100);
        used(130);
        assert_eq!(last(), Some(at(100)), "to about a minute");
        assert_eq!(keys.unwritten(false), [(one.id, at(100))], "the first use is written soon");
        keys.written(&[(one.id, at(100))]);
        used(200);
        assert_eq!(keys.unwritten(false), [], "the next ones after an hour");
        assert_eq!(keys.unwritten(true), [(one.id, at(200))]);
        keys.rename(one.id, "other".into());
        assert_eq!((last(), keys.unwritten(false)), (Some(at(200)), vec![]), "a new name forgets nothing");
        used(3800);
        assert_eq!(keys.unwritten(false), [(one.id, at(3800))]);
        used(50);
        assert_eq!(last(), Some(at(3800)), "a clock that was set back moves no use back");
    }
}
