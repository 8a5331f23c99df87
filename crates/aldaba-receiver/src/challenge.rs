use crate::{Answer, Ledger, Receiver};
use aldaba_signature::inbound::challenge;
use http::Method;
use std::fmt;

/// How a sender asks, before its first event and without a signature, whether an address is a receiver's. The challenges
/// that are signed (Slack, Zoom) are part of their recipes, and need none of this.
#[derive(Clone)]
#[non_exhaustive]
pub enum Challenge {
    /// Meta: a GET that shows the verify token, and gets its `hub.challenge` back.
    Meta {
        /// What was typed in at Meta. An empty one fits nothing.
        verify_token: String,
    },
    /// Microsoft Graph: a POST with a `validationToken` in its query, which it gets back. Anybody can ask that.
    MicrosoftGraph,
}

impl Challenge {
    /// Answers the challenge of Meta's platforms for the given verify token.
    pub fn meta(verify_token: impl Into<String>) -> Self {
        Self::Meta { verify_token: verify_token.into() }
    }

    fn answer(&self, method: &Method, query: &str) -> Option<challenge::Answer> {
        match self {
            Self::Meta { verify_token } if *method == Method::GET => challenge::meta(query, verify_token),
            Self::MicrosoftGraph if *method == Method::POST => challenge::microsoft_graph(query),
            Self::Meta { .. } | Self::MicrosoftGraph => None,
        }
    }
}

impl<L: Ledger> Receiver<L> {
    /// What to answer if this is the challenge that the receiver was made with
    /// ([`Builder::challenge`](crate::Builder::challenge)); `None`, if it is not. The layer asks by itself. In other
    /// frameworks it comes before [`Receiver::handle`], which is not told of queries.
    pub fn challenge(&self, method: &Method, query: Option<&str>) -> Option<Answer> {
        let answer = self.0.options.challenge.as_ref()?.answer(method, query?)?;
        let answer = Answer::challenge(answer);
        self.0.counters.event(answer.outcome());
        Some(answer)
    }
}

impl fmt::Debug for Challenge {
    // The token is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Meta { .. } => "Meta",
            Self::MicrosoftGraph => "MicrosoftGraph",
        })
    }
}
