//! Owners of sources make, change and delete them.

use super::inbound::client_state;
use super::{Client, OrderOutcome, once};
use crate::scenario::{LABEL, Naming};
use aldaba_delivery::{AppId, SourceId};
use aldaba_engine::{ChangeError, CreateOutcome, NewSource, SourceSecrets, SourceSettings};
use aldaba_store::Source;

/// A source as its owner knows it.
#[derive(Clone, Debug)]
pub(super) struct KnownSource {
    pub(super) id: SourceId,
    pub(super) app: AppId,
    /// The newest last.
    pub(super) tokens: Vec<String>,
}

impl Client {
    pub(super) async fn create_source(&self, number: usize) -> Result<(), ChangeError> {
        let new = self.new_source(number, 0);
        if let Err(problems) = new.check() {
            self.world.notes.lock().surprises.push(format!("source {number}: {problems:?}"));
        }
        let made = self.directory().create_source(new, once("source", number)).await?;
        let (CreateOutcome::Created(source) | CreateOutcome::Existing(source)) = made;
        let token = self.engine.directory().source_token(&source)?;
        let known = KnownSource { id: source.id, app: source.app, tokens: vec![token] };
        self.world.notes.lock().sources.insert(number, known);
        Ok(())
    }

    /// Its name says which version it is.
    fn new_source(&self, number: usize, version: usize) -> NewSource {
        let scenario = &self.world.scenario;
        let plan = &scenario.sources[number];
        let told = &plan.versions[version];
        let kind = match plan.naming {
            Naming::ById => "standard-webhooks",
            Naming::ByBody => "x-webhook-signature",
            Naming::ByNothing => "microsoft-graph",
        };
        let secret = |key: &usize| match plan.naming {
            Naming::ByNothing => client_state(number, *key),
            _ => plan.keys[*key].public_text(),
        };
        let mut secrets = SourceSecrets::default();
        secrets.secrets = told.keys.iter().map(|key| secret(key).into()).collect();
        NewSource {
            org: scenario.org,
            uid: Some(format!("source-{number}")),
            name: version.to_string(),
            metadata: "{}".into(),
            kind: kind.into(),
            settings: SourceSettings {
                filter_types: told.filter_types.iter().map(|name| (*name).to_owned()).collect(),
                forward_headers: Some(vec![LABEL.into()]),
                duplicate_window_days: Some(plan.window_days),
                other_body_is_duplicate: told.other_body_is_duplicate,
                ..SourceSettings::default()
            },
            secrets,
        }
    }

    /// `Err`: what to answer.
    async fn current_source(&self, number: usize) -> Result<Source, OrderOutcome> {
        let id = self.world.notes.lock().sources[&number].id;
        match self.engine.store().source(self.world.scenario.org, id.to_string()).await {
            Ok(Some(source)) => Ok(source),
            // It was deleted meanwhile.
            Ok(None) => Err(OrderOutcome::Done),
            Err(error) => Err(self.changed(Err(error.into()))),
        }
    }

    pub(super) async fn change_source(
        &self,
        number: usize,
        version: usize,
    ) -> Result<OrderOutcome, OrderOutcome> {
        let current = self.current_source(number).await?;
        let new = self.new_source(number, version);
        Ok(self.source_changed(self.directory().update_source(&current, new).await.map(drop)))
    }

    pub(super) async fn rotate_token(&self, number: usize) -> Result<OrderOutcome, OrderOutcome> {
        let current = self.current_source(number).await?;
        let rotated = self.directory().rotate_source_token(&current, once("rotate", number)).await;
        let token = rotated.and_then(|source| Ok(self.engine.directory().source_token(&source)?));
        if let Ok(token) = &token
            && !self.process.is_dead()
        {
            let mut notes = self.world.notes.lock();
            let known = notes.sources.get_mut(&number).expect("it was made");
            if known.tokens.last() != Some(token) {
                known.tokens.push(token.clone());
            }
        }
        Ok(self.source_changed(token.map(drop)))
    }

    pub(super) async fn delete_source(&self, number: usize) -> Result<OrderOutcome, OrderOutcome> {
        let current = self.current_source(number).await?;
        Ok(self.source_changed(self.directory().delete_source(&current).await))
    }

    fn source_changed(&self, result: Result<(), ChangeError>) -> OrderOutcome {
        match result {
            // It was deleted meanwhile, or by an earlier request whose answer was lost.
            Err(ChangeError::NotFound | ChangeError::MadeAndGone(_)) => OrderOutcome::Done,
            // Somebody else was quicker.
            Err(ChangeError::Unsettled) => OrderOutcome::Refused,
            other => self.changed(other),
        }
    }
}
