//! What the client has asked, and what it was told.

use super::sources::KnownSource;
use crate::scenario::Scenario;
use aldaba_delivery::{AppId, EndpointId, MessageId, Timestamp};
use aldaba_store::Seq;
use std::collections::{BTreeMap, BTreeSet};

/// What the client knows. It outlives the server.
#[derive(Debug, Default)]
pub struct Notes {
    pub(super) progress: Vec<Progress>,
    pub(super) endpoints: BTreeMap<usize, (AppId, EndpointId)>,
    pub(super) sources: BTreeMap<usize, KnownSource>,
    /// How often each webhook was sent, and how often its key was not known.
    pub(super) tries: BTreeMap<usize, (usize, usize)>,
    /// The messages that each event was accepted as.
    pub accepted: BTreeMap<usize, Vec<MessageId>>,
    /// Deliveries that the client wanted to cancel, and those of them that it was told are.
    pub to_cancel: BTreeSet<Seq>,
    pub cancelled: BTreeSet<Seq>,
    /// Messages whose payloads the client wanted to be deleted.
    pub to_expunge: BTreeSet<MessageId>,
    /// Portal tokens that were issued.
    pub tokens: Vec<IssuedToken>,
    /// Ended tokens that counted all the same, and others that did not.
    pub token_faults: Vec<String>,
    /// Deliveries that wait for longer than they may.
    pub due_faults: Vec<String>,
    /// Answers that no fault explains.
    pub surprises: Vec<String>,
}

/// A token, and what became of it.
#[derive(Clone, Copy, Debug)]
pub struct IssuedToken {
    pub app: AppId,
    pub mark: [u8; 32],
    /// What the engine's clock showed when it was issued.
    pub shown: Timestamp,
    pub issued_at: Timestamp,
    pub expires_at: Timestamp,
    /// It was ended, and the caller was told so.
    pub ended: bool,
    /// Somebody has tried, and was not answered.
    pub may_have_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Due(Timestamp),
    /// Asked, and not answered yet.
    Asked,
    /// Answered; will ask once more all the same.
    Again(Timestamp),
    Over,
}

impl Notes {
    pub fn new(scenario: &Scenario) -> Self {
        let progress = scenario.orders.iter().map(|order| Progress::Due(order.at)).collect();
        Self { progress, ..Self::default() }
    }

    pub fn all_over(&self) -> bool {
        self.progress.iter().all(|progress| *progress == Progress::Over)
    }
}
