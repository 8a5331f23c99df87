//! Numbers for pages: of the last hours, and of what waits or has died. Counts have an upper limit.

use super::{ApplicationQuestions, DeliveryQuestions, Error, Questions, distinct};
use aldaba_delivery::{AppId, EndpointId};
use aldaba_store::{
    AttemptCounts, CountedSpans, DeadLetterGroups, DeadLetterOf, DeliveryStatus, Endpoint, EndpointCounts,
    Hour, Message, OrganizationCounts, OrganizationCountsQuery,
};
use std::collections::BTreeMap;

/// What is counted one by one, at most: beyond it pages say "10,000+".
pub(crate) const MOST_COUNTED: usize = 10_000;

impl Questions<'_> {
    /// What happened in the organization in these hours; those in which nothing happened are left out.
    pub(crate) async fn organization_hours(
        &self,
        first: Hour,
        last: Hour,
    ) -> Result<Vec<(Hour, OrganizationCounts)>, Error> {
        let spans = CountedSpans::Hours(first.0..=last.0);
        let query = OrganizationCountsQuery { org: self.caller.org(), spans };
        let found = self.store().organization_counts(query).await?;
        Ok(found.into_iter().map(|(hour, counts)| (Hour(hour), counts)).collect())
    }

    /// Attempts of applications that this caller has read, by hour.
    pub(crate) async fn application_hours(
        &self,
        apps: Vec<AppId>,
        first: Hour,
        last: Hour,
    ) -> Result<BTreeMap<AppId, BTreeMap<Hour, AttemptCounts>>, Error> {
        let apps = self.own(apps).await?;
        let mut hours: BTreeMap<AppId, BTreeMap<Hour, AttemptCounts>> = BTreeMap::new();
        for (app, hour, counts) in self.store().application_hours(apps, first, last).await? {
            hours.entry(app).or_default().insert(hour, counts);
        }
        Ok(hours)
    }

    /// How many deliveries each of these applications has in the dead letter, up to `most`.
    pub(crate) async fn dead_counts(
        &self,
        apps: Vec<AppId>,
        most: usize,
    ) -> Result<BTreeMap<AppId, u64>, Error> {
        let apps = self.own(apps).await?;
        let counts = self.store().dead_counts(apps.clone(), most).await?;
        Ok(apps.into_iter().zip(counts).collect())
    }

    /// Which endpoints are given up, as failed or gone; at most [`MOST_COUNTED`].
    pub(crate) async fn given_up_endpoints(&self) -> Result<Vec<(AppId, EndpointId)>, Error> {
        let mut found = self.store().given_up_endpoints(self.caller.org(), MOST_COUNTED).await?;
        found.retain(|(app, _)| self.caller.speaks_for(self.caller.org(), *app));
        Ok(found)
    }

    /// Endpoints of the caller by their ids, deleted ones too: what happened stays visible.
    pub(crate) async fn endpoints_by_id(
        &self,
        ids: impl IntoIterator<Item = EndpointId>,
    ) -> Result<BTreeMap<EndpointId, Endpoint>, Error> {
        let found = self.store().lane_endpoints(distinct(ids)).await?;
        let own = found.into_iter().filter(|endpoint| self.caller.speaks_for(endpoint.org, endpoint.app));
        Ok(own.map(|endpoint| (endpoint.id, endpoint)).collect())
    }

    /// For how long the oldest delivery of the organization could have been sent; some seconds old. `None`: nobody has looked yet.
    pub(crate) fn oldest_wait(&self) -> Option<std::time::Duration> {
        self.engine.statistics().oldest_wait_of(self.caller.org())
    }

    /// Of these, the applications that the caller may reach.
    async fn own(&self, apps: Vec<AppId>) -> Result<Vec<AppId>, Error> {
        let apps = distinct(apps.into_iter().filter(|app| self.caller.speaks_for(self.caller.org(), *app)));
        let exist = self.store().are_of(self.caller.org(), apps.clone()).await?;
        Ok(apps.into_iter().zip(exist).filter_map(|(app, exists)| exists.then_some(app)).collect())
    }
}

impl DeliveryQuestions<'_> {
    /// What the newest deliveries of the dead letter have died of, and where.
    pub(crate) async fn dead_letter_groups(&self) -> Result<DeadLetterGroups, Error> {
        let of = match self {
            Self::Application(application) => DeadLetterOf::Application(application.id),
            Self::DeadLetter(questions) => DeadLetterOf::Organization(questions.caller.org()),
        };
        Ok(self.engine().store().dead_letter_groups(of, MOST_COUNTED).await?)
    }
}

impl ApplicationQuestions<'_> {
    /// What happened at an endpoint in these hours; those without attempts are left out.
    pub(crate) async fn endpoint_hours(
        &self,
        endpoint: &Endpoint,
        first: Hour,
        last: Hour,
    ) -> Result<BTreeMap<Hour, EndpointCounts>, Error> {
        Ok(self.store().endpoint_hours(endpoint.id, first, last).await?.into_iter().collect())
    }

    /// How many deliveries wait for each of the application's endpoints, up to `most`.
    pub(crate) async fn waiting_counts(
        &self,
        endpoints: &[Endpoint],
        most: usize,
    ) -> Result<BTreeMap<EndpointId, u64>, Error> {
        let own: Vec<_> =
            endpoints.iter().filter(|endpoint| endpoint.app == self.id).map(|endpoint| endpoint.id).collect();
        let counts = self.store().waiting_counts(own.clone(), most).await?;
        Ok(own.into_iter().zip(counts).collect())
    }

    /// The deliveries of a message, all rounds.
    pub(crate) async fn deliveries_of(&self, message: &Message) -> Result<Vec<DeliveryStatus>, Error> {
        Ok(self.store().deliveries(message.id).await?)
    }
}
