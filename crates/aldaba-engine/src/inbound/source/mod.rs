//! Inbound doors: a source verifies, deduplicates and stores the webhooks of another sender, for the application that
//! it owns. From there on its events are messages like any other.

mod compile;
mod door;
mod doors;
mod kind;
mod looking;
mod receive;
mod settings;
mod tally;

pub use door::{Door, DoorError, InboundEvent, Opened};
pub use doors::Doors;
pub use kind::{SOURCE_TYPES, secret_field};
pub(crate) use looking::Looking;
pub(crate) use receive::Sources;
pub use receive::{ReceiveError, Reception};
pub use settings::{
    Answer as SourceAnswer, HeaderCondition, HmacSettings, SourceProblem, SourceSecrets, SourceSettings,
};
pub use tally::{Refused, SourceCounts, Tally};

use aldaba_delivery::OrgId;
use aldaba_store::SourceConfig;
use sha2::{Digest, Sha256};

/// Something to be a source.
#[derive(Clone, Debug)]
pub struct NewSource {
    pub org: OrgId,
    pub uid: Option<String>,
    pub name: String,
    /// A JSON object of strings.
    pub metadata: String,
    /// One of [`SOURCE_TYPES`].
    pub kind: String,
    pub settings: SourceSettings,
    pub secrets: SourceSecrets,
}

impl NewSource {
    /// All that is wrong with it.
    pub fn check(&self) -> Result<(), Vec<SourceProblem>> {
        compile::compile(&self.kind, &self.settings, &self.secrets).map(drop)
    }

    /// Whether whoever sends must show that it is the sender.
    pub fn verifies(&self) -> bool {
        self.secrets.verify(&self.kind)
    }

    pub(crate) fn config(&self) -> SourceConfig {
        SourceConfig {
            uid: self.uid.clone(),
            name: self.name.clone(),
            metadata: self.metadata.clone(),
            kind: self.kind.clone(),
            settings: self.settings.write(),
        }
    }
}

/// What a source is found by: the text itself is known to its sender, and sealed.
pub(crate) fn token_digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
