//! Sources, and the events and refused requests of one.

use super::{Error, Missing, Questions};
use crate::api::Access;
use aldaba_delivery::{MessageId, SourceId};
use aldaba_engine::{Engine, RefusedRequest, SourceCounts, SourceSecrets, SourceSettings};
use aldaba_store::{ListPage, Order, Page, Source, SourceEvent, SourceEventsQuery, Store};
use std::ops::Deref;

/// A source of the caller's organization, and the questions about it.
#[derive(Clone, Debug)]
pub(crate) struct SourceQuestions<'a> {
    engine: &'a Engine,
    source: Source,
}

impl Deref for SourceQuestions<'_> {
    type Target = Source;

    fn deref(&self) -> &Source {
        &self.source
    }
}

/// A source with its settings, secrets and counters.
pub(crate) struct SourceDetails {
    pub(crate) settings: SourceSettings,
    pub(crate) secrets: SourceSecrets,
    /// The last part of its URL. `None`: the caller may not see secrets.
    pub(crate) token: Option<String>,
    pub(crate) counts: Option<SourceCounts>,
}

impl<'a> Questions<'a> {
    /// A source by its id or uid.
    pub(crate) async fn source(&self, key: &str) -> Result<SourceQuestions<'a>, Error> {
        self.find_source(key).await?.ok_or_else(|| Missing::Source.into())
    }

    pub(crate) async fn find_source(&self, key: &str) -> Result<Option<SourceQuestions<'a>>, Error> {
        let found = self.store().source(self.caller.org(), key.to_owned()).await?;
        Ok(found.map(|source| SourceQuestions { engine: self.engine, source }))
    }

    pub(crate) async fn sources(&self, page: Page<SourceId>, order: Order) -> Result<Vec<Source>, Error> {
        Ok(self.store().sources(self.caller.org(), page, order).await?)
    }

    pub(crate) fn source_details(&self, source: &Source) -> Result<SourceDetails, Error> {
        let directory = self.engine.directory();
        let secrets = directory.source_secrets(source)?;
        let token = match self.caller.may(Access::ReadSecrets) {
            Ok(()) => Some(directory.source_token(source)?),
            Err(_) => None,
        };
        Ok(SourceDetails {
            settings: SourceSettings::read(&source.config.settings).unwrap_or_default(),
            secrets,
            token,
            counts: self.engine.source_counters().counts(source.id),
        })
    }
}

impl<'a> SourceQuestions<'a> {
    fn store(&self) -> &'a dyn Store {
        &**self.engine.store()
    }

    pub(crate) fn into_source(self) -> Source {
        self.source
    }

    pub(crate) async fn events(
        &self,
        query: SourceEventsQuery,
    ) -> Result<ListPage<SourceEvent, MessageId>, Error> {
        Ok(self.store().source_events(SourceEventsQuery { app: self.app, ..query }).await?)
    }

    /// By the id of its message, or by the id that the sender gave it.
    pub(crate) async fn event(&self, key: String) -> Result<SourceEvent, Error> {
        self.store().source_event(self.app, key).await?.ok_or_else(|| Missing::SourceEvent.into())
    }

    /// The last requests that were refused, oldest first.
    pub(crate) fn refused_requests(&self) -> Vec<RefusedRequest> {
        self.engine.source_counters().refused(self.id)
    }
}
