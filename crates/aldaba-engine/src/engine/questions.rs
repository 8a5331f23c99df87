//! Questions to an engine: what the store knows, and what only memory knows.

use super::Engine;
use crate::intake::matching::{self, Mismatch};
use crate::observing::probe_store;
use crate::scheduling::HeldHost;
use crate::scheduling::SchedulingQuestion;
use crate::scheduling::{SchedulingProgress, WaitQuestion, WaitReasons};
use aldaba_delivery::{AppId, EndpointId, OrgId, Timestamp};
use aldaba_store::{ApplicationRef, Endpoint, Error, Message, RestartedTask, Seq, Subscription};

impl Engine {
    /// Why each endpoint does not receive a message, by what both are now. `None`: it would.
    pub async fn mismatches(&self, endpoints: Vec<Subscription>, message: &Message) -> Vec<Option<Mismatch>> {
        matching::mismatches_of(&self.0.explaining, endpoints, message).await
    }

    /// The held origins of an organization, by origin and scope. How much each holds is counted for the organization or for one
    /// application. It waits for nothing.
    pub fn held_hosts(&self, org: OrgId, app: Option<AppId>) -> Vec<HeldHost> {
        self.0.held.of(org, app)
    }

    /// Why deliveries are pending, as far as only memory knows.
    pub async fn wait_reasons(&self, deliveries: &[(&Endpoint, Seq)]) -> Vec<WaitReasons> {
        let question =
            |(endpoint, seq): &(&Endpoint, Seq)| WaitQuestion::new(endpoint, *seq, &self.0.policies);
        let answered = self
            .0
            .inbox
            .ask(|answer| SchedulingQuestion::WaitReasons(deliveries.iter().map(question).collect(), answer));
        // Without a dispatcher nothing is sent.
        let nothing = || vec![WaitReasons { paused: true, ..WaitReasons::default() }; deliveries.len()];
        answered.await.unwrap_or_else(nothing)
    }

    /// Whether an endpoint of the application could receive such a message. Filters are not evaluated. `None`: the application
    /// does not exist.
    pub async fn has_subscriber(
        &self,
        which: &ApplicationRef,
        event_type: &str,
        channels: &[String],
    ) -> Result<Option<bool>, Error> {
        // Not from the cache: it notices old versions only when something is written.
        let tenant = self.0.store.tenant(which.clone()).await?;
        let takes =
            |endpoint: &Subscription| endpoint.skips().is_none() && endpoint.lists(event_type, channels);
        Ok(tenant.map(|tenant| tenant.endpoints.iter().any(takes)))
    }

    /// Whether an application exists and belongs to the organization; from the cache if possible.
    pub async fn has_application(&self, org: OrgId, app: AppId) -> Result<bool, Error> {
        let applications = &self.0.credentials.applications;
        if applications.contains(org, app) {
            return Ok(true);
        }
        let begun = applications.begin_read();
        let there = self.0.store.are_of(org, vec![app]).await? == [true];
        if there {
            applications.insert(begun, org, app);
        }
        Ok(there)
    }

    /// The application that a caller's name for it means; from the cache if possible.
    pub async fn application_id(&self, which: &ApplicationRef) -> Result<Option<AppId>, Error> {
        let tenant = self.0.directory.tenant(which).await?;
        Ok(tenant.map(|tenant| tenant.application.id))
    }

    /// Since when due deliveries wait for the rate of an endpoint or of its application. `None`: none waits.
    pub async fn throttled_since(&self, endpoint: EndpointId) -> Option<Timestamp> {
        let answered = self.0.inbox.ask(|answer| SchedulingQuestion::ThrottledSince(endpoint, answer));
        answered.await.unwrap_or_default()
    }

    /// Background tasks that panicked and were restarted lately, with those of the store.
    pub fn restarted_tasks(&self) -> Vec<RestartedTask> {
        self.0.measurements.restarted_tasks()
    }

    /// Whether deliveries are getting on. `None`: the dispatcher has stopped.
    pub async fn progress(&self) -> Option<SchedulingProgress> {
        self.0.inbox.ask(SchedulingQuestion::Progress).await
    }

    /// Writes a few bytes, to see whether anything can be written.
    pub async fn probe_store(&self) -> Result<(), Error> {
        probe_store(&*self.0.store, self.0.clock.now()).await
    }

    /// How many deliveries are in flight.
    pub async fn in_flight(&self) -> usize {
        self.0.inbox.ask(SchedulingQuestion::InFlight).await.unwrap_or(0)
    }
}
