//! Numbers of attempts.

use super::{ApplicationQuestions, Error};
use aldaba_delivery::Timestamp;
use aldaba_store::{ApplicationAttemptsQuery, AttemptCounts, Endpoint};
use std::collections::BTreeMap;

impl ApplicationQuestions<'_> {
    pub(crate) async fn endpoint_attempts(
        &self,
        endpoint: &Endpoint,
        since: Timestamp,
        until: Timestamp,
    ) -> Result<AttemptCounts, Error> {
        Ok(self.store().endpoint_attempts(endpoint.id, since, until).await?)
    }

    /// By event type. `None`: more counters than the query allows.
    pub(crate) async fn attempts_by_event_type(
        &self,
        query: ApplicationAttemptsQuery,
    ) -> Result<Option<BTreeMap<String, AttemptCounts>>, Error> {
        Ok(self.store().application_attempts(ApplicationAttemptsQuery { app: self.id, ..query }).await?)
    }
}
