//! Makes one manual attempt.

use crate::api::Api;
use crate::questions::ApplicationQuestions;
use crate::token::Caller;
use aldaba_engine::{IdempotencyDigest, ManualAttempt, NewResend, ResendError};
use aldaba_store::{Attempt, AuditAction, Endpoint, Message};
use std::time::Duration;

/// How long a request waits for a resend. Then the attempt goes on without it.
const RESEND_TIMEOUT: Duration = Duration::from_secs(5);

/// The attempt, whatever came of it; `None`: it is still being made.
pub(crate) async fn resend(
    api: &Api,
    caller: &Caller,
    application: &ApplicationQuestions<'_>,
    (message, endpoint): (&Message, &Endpoint),
    once: IdempotencyDigest,
) -> Result<Option<Attempt>, ResendError> {
    let action =
        AuditAction::new("message.resend", &message.id).of_app(endpoint.app).at_endpoint(endpoint.id);
    let audit = api.engine.entry(caller.actor(), action);
    let asked = NewResend { endpoint: endpoint.clone(), message: message.clone(), audit, once };
    match tokio::time::timeout(RESEND_TIMEOUT, api.engine.resend(asked)).await {
        Err(_) => Ok(None),
        Ok(ended) => match ended? {
            ManualAttempt::Made(attempt) => Ok(Some(*attempt)),
            ManualAttempt::Repeated(attempt) => Ok(application.stored_attempt(message, attempt).await?),
        },
    }
}
