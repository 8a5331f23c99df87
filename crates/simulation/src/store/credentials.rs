//! API keys, and tokens that count no longer.

use super::SimStore;
use super::disk::Disk;
use crate::sabotage::Sabotage;
use aldaba_delivery::{ApiKeyId, AppId, OrgId, Timestamp};
use aldaba_store::{ApiKey, Changed, Credentials, PortalCut, Read, RevokedToken, Stale};
use std::time::Duration;

impl Credentials for SimStore {
    fn api_keys(&self) -> Read<Vec<ApiKey>> {
        self.read(|disk| disk.api_keys.values().cloned().collect())
    }

    fn revoked_tokens(&self) -> Read<Vec<RevokedToken>> {
        let forgets = self.sabotage(Sabotage::ForgetRevocations);
        self.read(move |disk| disk.revoked_tokens.values().filter(|_| !forgets).copied().collect())
    }

    fn portal_cuts(&self) -> Read<Vec<PortalCut>> {
        let delays = self.sabotage(Sabotage::DelayCuts);
        let read = move |cut: &PortalCut| match delays {
            true => PortalCut { ends_at: cut.ends_at + Duration::from_millis(1), ..cut.clone() },
            false => cut.clone(),
        };
        self.read(move |disk| disk.portal_cuts.iter().map(read).collect())
    }
}

fn made() -> Changed {
    Changed::Done { removed: Vec::new() }
}

impl Disk {
    fn owner_of(&self, app: AppId) -> Option<OrgId> {
        self.applications.get(&app).filter(|row| !row.deleted).map(|row| row.application.org)
    }

    pub(super) fn create_api_key(&mut self, key: &ApiKey) -> Changed {
        if key.app.is_some_and(|app| self.owner_of(app) != Some(key.org)) {
            return Changed::NotFound;
        }
        if self.api_keys.values().filter(|other| other.org == key.org).count() >= ApiKey::MOST {
            return Changed::TooMany;
        }
        if self.api_keys.values().any(|other| other.prefix == key.prefix || other.digest == key.digest) {
            return Changed::UidTaken;
        }
        self.api_keys.insert(key.id, key.clone());
        made()
    }

    pub(super) fn rename_api_key(&mut self, org: OrgId, id: ApiKeyId, name: &str) -> Changed {
        let Some(key) = self.api_keys.get_mut(&id).filter(|key| key.org == org) else {
            return Changed::NotFound;
        };
        key.name = name.to_owned();
        made()
    }

    pub(super) fn revoke_api_key(&mut self, org: OrgId, id: ApiKeyId) -> Changed {
        if self.api_keys.get(&id).is_none_or(|key| key.org != org) {
            return Changed::NotFound;
        }
        self.api_keys.remove(&id);
        made()
    }

    pub(super) fn note_key_uses(&mut self, uses: &[(ApiKeyId, Timestamp)]) -> Changed {
        for (id, at) in uses {
            if let Some(key) = self.api_keys.get_mut(id) {
                key.last_used_at = key.last_used_at.max(Some(*at));
            }
        }
        made()
    }

    pub(super) fn grant_portal_access(&self, app: AppId) -> Changed {
        if self.owner_of(app).is_some() { made() } else { Changed::NotFound }
    }

    pub(super) fn end_portal_tokens(&mut self, app: AppId, cuts: &[PortalCut], now: Timestamp) -> Changed {
        if self.owner_of(app).is_none() {
            return Changed::NotFound;
        }
        for new in cuts {
            if !self.portal_cuts.iter().any(|old| old.covers(new, now)) {
                self.portal_cuts.retain(|old| !new.covers(old, now));
                self.portal_cuts.insert(new.clone());
            }
        }
        made()
    }

    pub(super) fn revoke_token(&mut self, token: &RevokedToken) -> Changed {
        match self.revoked_tokens.contains_key(&token.mark) {
            true => Changed::Unchanged,
            false => {
                self.revoked_tokens.insert(token.mark, *token);
                made()
            }
        }
    }

    pub(super) fn needless_revocations(&self, before: Timestamp, limit: usize) -> Vec<Stale> {
        let over = |until: Option<Timestamp>| until.is_some_and(|until| until < before);
        let mut tokens: Vec<_> = self.revoked_tokens.values().filter(|row| over(row.expires_at)).collect();
        tokens.sort_by_key(|row| (row.expires_at, row.mark));
        let cuts = self.portal_cuts.iter().filter(|cut| over(cut.expires_at)).cloned();
        let tokens = tokens.into_iter().map(|row| Stale::RevokedToken(row.mark, before));
        tokens.chain(cuts.map(Stale::PortalCut)).take(limit).collect()
    }
}
