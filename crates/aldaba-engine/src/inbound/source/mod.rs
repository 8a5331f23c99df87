//! Sources receive webhooks of other senders: they verify, deduplicate and store them as messages of the
//! application that the source owns.

mod cache;
mod compile;
mod counters;
mod inbound;
mod inspection_queue;
mod receive;
mod settings;
mod types;

pub use cache::SourceCache;
pub use counters::{RefusedRequest, SourceCounters, SourceCounts};
pub use inbound::{InboundError, InboundEvent, InspectedRequest, LoadedSource};
pub(crate) use inspection_queue::InspectionQueue;
pub(crate) use receive::SourceServices;
pub use receive::{ReceiveError, Reception};
pub use settings::{
    HeaderCondition, HmacSettings, SourceAnswer, SourceProblem, SourceSecrets, SourceSettings,
};
pub use types::{SOURCE_TYPES, secret_field};

use aldaba_delivery::OrgId;
use aldaba_store::SourceConfig;
use sha2::{Digest, Sha256};

/// The properties of a new or changed source.
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
    /// Checks everything and returns all problems.
    pub fn check(&self) -> Result<(), Vec<SourceProblem>> {
        compile::compile(&self.kind, &self.settings, &self.secrets).map(drop)
    }

    /// Whether senders must authenticate.
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

/// The digest by which a source is found. The token itself is sealed.
pub(crate) fn token_digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}
