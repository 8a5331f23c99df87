use crate::{Answer, Ledger, Receiver};
use aldaba_signature::inbound::challenge;
use http::Method;
use std::fmt;

/// An unsigned request by which a sender tests, before its first event, that a URL is a receiver. Signed challenges
/// (Slack, Zoom) are part of their recipes and need no setting.
#[derive(Clone)]
#[non_exhaustive]
pub enum Challenge {
    /// Meta: a GET with the verify token; the answer is its `hub.challenge`.
    Meta {
        /// The token that was entered at Meta. An empty token matches nothing.
        verify_token: String,
    },
    /// Microsoft Graph: a POST with a `validationToken` in its query, which is the answer. Anybody can send one.
    MicrosoftGraph,
}

impl Challenge {
    /// The challenge of Meta's platforms, with this verify token.
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
    /// Answers a challenge of the kind that [`Builder::challenge`](crate::Builder::challenge) has set; `None` for any
    /// other request. The layer calls this itself. In other frameworks call it before [`Receiver::handle`], which does not
    /// see the query.
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
