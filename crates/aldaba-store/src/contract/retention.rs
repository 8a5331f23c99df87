//! Removing what is no longer kept.
//!
//! The store walks, finds and removes by itself; [`Retention::expire`] makes one bounded step of that. For how long
//! something is kept is said by [`RetentionRules`], whose policies `aldaba-delivery` understands. Nothing is removed that
//! waits or is referred to.

use crate::operations::RetentionWalk;
use crate::{PortalExpiry, Read};
use aldaba_delivery::policy::{RetentionDefaults, RetentionRule};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

/// An endpoint, deleted or not, with what says how long its deliveries are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptEndpoint {
    pub app: AppId,
    pub id: EndpointId,
    pub org: OrgId,
    pub policy: String,
    pub deleted: bool,
    /// It goes without having been deleted.
    pub direct: bool,
}

/// For how long everything is kept.
#[derive(Clone, Debug)]
pub struct RetentionRules {
    pub policies: RetentionPolicies,
    /// Where a policy says nothing. The span for delivered ones is that of messages which went to nobody, too.
    pub defaults: RetentionDefaults,
    pub counters: Duration,
    pub replays: Duration,
    pub audit: Duration,
    pub gates: Duration,
    /// Resolved alerts.
    pub alerts: Duration,
    /// How long an event id is remembered at least, counted from the acceptance of its message.
    pub event_ids: Duration,
    /// By how much the clock may be ahead. What must not come back to life, keys and revocations, is kept longer by that.
    pub clock_tolerance: Duration,
}

/// The rules of the policies that endpoints can name.
#[derive(Clone, Debug, Default)]
pub struct RetentionPolicies {
    pub builtin: BTreeMap<String, RetentionRule>,
    pub own: BTreeMap<(OrgId, String), RetentionRule>,
    /// For endpoints whose policy is gone.
    pub default: RetentionRule,
}

impl RetentionPolicies {
    pub fn of(&self, org: OrgId, name: &str) -> RetentionRule {
        let own = || self.own.get(&(org, name.to_owned()));
        *self.builtin.get(name).or_else(own).unwrap_or(&self.default)
    }
}

/// What one step may do at most.
#[derive(Clone, Copy, Debug)]
pub struct RetentionBudget {
    /// Items that one search finds.
    pub found: usize,
    /// Rows that one search looks at.
    pub rows: usize,
    /// Items that one slice removes. The store ends a slice earlier when it has taken a few milliseconds.
    pub slice: usize,
}

/// What one step has done.
#[derive(Debug)]
pub struct Expired {
    /// Where the next step goes on.
    pub walk: RetentionWalk,
    pub removed: RemovedCounts,
    /// What no longer has to be remembered of credentials.
    pub credentials: Vec<RemovedCredential>,
    /// How long the writer was busy; `None`: it was not needed.
    pub took: Option<Duration>,
}

/// Something of credentials that the store has removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemovedCredential {
    RevokedToken([u8; 32]),
    PortalExpiry(PortalExpiry),
    /// All of an application.
    Application(AppId),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemovedCounts {
    pub deliveries: u64,
    pub attempts: u64,
    pub messages: u64,
    pub payloads: u64,
    pub keys: u64,
    pub counters: u64,
    pub gates: u64,
    pub replays: u64,
    pub endpoints: u64,
    pub applications: u64,
    pub audit: u64,
    pub alerts: u64,
    pub revocations: u64,
}

impl AddAssign for RemovedCounts {
    fn add_assign(&mut self, more: Self) {
        self.deliveries += more.deliveries;
        self.attempts += more.attempts;
        self.messages += more.messages;
        self.payloads += more.payloads;
        self.keys += more.keys;
        self.counters += more.counters;
        self.gates += more.gates;
        self.replays += more.replays;
        self.endpoints += more.endpoints;
        self.applications += more.applications;
        self.audit += more.audit;
        self.alerts += more.alerts;
        self.revocations += more.revocations;
    }
}

pub trait Retention {
    /// One step of a round: a search on a snapshot, or a slice of what was found, removed in one commit of a few
    /// milliseconds after everything else that waits to be written. After an error the same walk can be continued.
    fn expire(
        &self,
        walk: RetentionWalk,
        rules: Arc<RetentionRules>,
        now: Timestamp,
        budget: RetentionBudget,
    ) -> Read<Expired>;
}
