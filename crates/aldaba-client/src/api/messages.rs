//! Messages: what happened, and goes to every endpoint that wants it.

use crate::api::applications::App;
use crate::call::Call;
use crate::listing::{Listing, Page, PageWalk, STREAM_PAGE_SIZE};
use crate::{Client, Error};
use aldaba_api::{Message, MessageSearch, NewMessage, Precheck, Prechecked, RawPayload, Timestamp, input};
use futures_util::stream::{Stream, TryStreamExt, try_unfold};

/// The messages of an application.
#[derive(Clone, Debug)]
pub struct Messages {
    pub(crate) app: App,
}

/// One message, by its id or `eventId`.
#[derive(Clone, Debug)]
pub struct AppMessage {
    pub(crate) client: Client,
    pub(crate) app: String,
    pub(crate) id: String,
}

impl App {
    /// Its messages.
    #[must_use]
    pub fn messages(&self) -> Messages {
        Messages { app: self.clone() }
    }

    /// One of its messages, by its id or `eventId`.
    #[must_use]
    pub fn message(&self, id: impl Into<String>) -> AppMessage {
        AppMessage { client: self.client.clone(), app: self.id.clone(), id: id.into() }
    }
}

impl Messages {
    pub(crate) fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["app", &self.app.id, "msg"], more].concat()
    }

    /// Sends one. When this returns it is on the server's disk.
    pub async fn send(&self, message: &NewMessage) -> Result<Message, Error> {
        Call::post(&self.path(&[])).json(message).answer(&self.app.client).await
    }

    /// The same; the answer does not have the payload.
    pub async fn send_quietly(&self, message: &NewMessage) -> Result<Message, Error> {
        Call::post(&self.path(&[])).query("with_content", &false).json(message).answer(&self.app.client).await
    }

    /// A page of them, newest first.
    pub fn list(&self) -> Listing<Message, MessageFilter> {
        Listing::new(&self.app.client, &self.path(&[]))
    }

    /// All of them, newest first.
    pub fn list_all(&self) -> impl Stream<Item = Result<Message, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// A page of those that are looked for.
    pub async fn search(&self, search: &MessageSearch) -> Result<Page<Message>, Error> {
        Call::post(&self.path(&["search"])).json(search).of_many().answer(&self.app.client).await
    }

    /// All that are looked for.
    pub fn search_all(
        &self,
        search: &MessageSearch,
    ) -> impl Stream<Item = Result<Message, Error>> + Send + Unpin + use<> {
        let limit = search.limit.or(Some(STREAM_PAGE_SIZE));
        let search = MessageSearch { limit, ..search.clone() };
        let walk = PageWalk::from(search.iterator.as_deref());
        let pages = try_unfold(Some((self.clone(), search, walk)), |state| async move {
            let Some((messages, mut search, mut walk)) = state else { return Ok::<_, Error>(None) };
            let page = messages.search(&search).await?;
            search.iterator = walk.after(&page)?;
            let rest = search.iterator.is_some().then_some((messages, search, walk));
            Ok(Some((futures_util::stream::iter(page.data.into_iter().map(Ok)), rest)))
        });
        Box::pin(pages.try_flatten())
    }

    /// Whether any endpoint would want such a message.
    pub async fn precheck(&self, precheck: &Precheck) -> Result<Prechecked, Error> {
        Call::post(&self.path(&["precheck", "active"])).json(precheck).answer(&self.app.client).await
    }
}

impl AppMessage {
    /// The parts of a path below it.
    pub(crate) fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["app", &self.app, "msg", &self.id], more].concat()
    }

    /// Shows it.
    pub async fn get(&self) -> Result<Message, Error> {
        Call::get(&self.path(&[])).answer(&self.client).await
    }

    /// Shows it without its payload.
    pub async fn get_without_payload(&self) -> Result<Message, Error> {
        Call::get(&self.path(&[])).query("with_content", &false).answer(&self.client).await
    }

    /// What is sent, as a text.
    pub async fn raw_payload(&self) -> Result<RawPayload, Error> {
        Call::get(&self.path(&["raw"])).answer(&self.client).await
    }

    /// Deletes its payload for good.
    pub async fn expunge_content(&self) -> Result<(), Error> {
        Call::delete(&self.path(&["content"])).done(&self.client).await
    }
}

input! {
    /// Which messages.
    MessageFilter {
        /// With this channel.
        channel: Option<String>,
        /// With this tag.
        tag: Option<String>,
        /// Of one of these types.
        #[serde(rename = "event_types")]
        event_types: Option<Vec<String>>,
        /// Accepted before.
        before: Option<Timestamp>,
        /// Accepted after.
        after: Option<Timestamp>,
        /// Whether payloads are shown; yes, if not given.
        #[serde(rename = "with_content")]
        with_content: Option<bool>,
    }
}
