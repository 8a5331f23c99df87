//! Reads an application page by page and sends it to the client as fast as that reads. Between two pages no read is open, so a
//! slow client holds nothing of the store.

use super::lines::{
    self, DeliveryLine, EndpointLine, Header, MessageLine, Secrets, SourceLine, Summary, SummaryLine,
};
use crate::api::{Api, Error, application, endpoint, event_type};
use crate::questions::ApplicationQuestions;
use crate::token::Caller;
use aldaba_delivery::{AppId, EndpointId, MessageId};
use aldaba_store::{
    Endpoint, Error as StoreError, ExportCursor, ExportQuery, Exported, Order, Page, TimeRange,
};
use bytes::Bytes;
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::time::Duration;
use tokio::sync::mpsc;

/// Bytes of payloads and responses of one page.
const PAGE_BYTES: usize = 256 * 1024;
/// Endpoints of one read.
const PAGE_ENDPOINTS: usize = 50;
/// URLs of endpoints that are kept in memory.
const MAX_URLS: usize = 10_000;
/// Names of event types that are kept in memory. An organization may have fewer that are described.
const MAX_EVENT_TYPES: usize = 20_000;
/// How often a page is read again while the store is busy, and how long until then.
const MAX_BUSY_RETRIES: u32 = 60;
const BUSY_RETRY_DELAY: Duration = Duration::from_secs(1);

/// Messages behind the first and up to the last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    pub(super) first: MessageId,
    pub(super) last: MessageId,
}

pub(super) struct Export {
    pub(super) api: Api,
    pub(super) caller: Caller,
    pub(super) app: AppId,
    pub(super) secrets: Secrets,
    pub(super) range: Range,
    pub(super) within: TimeRange,
}

pub(super) type Piece = io::Result<Bytes>;

/// Why an export ends before its last line.
enum Stopped {
    /// Nobody reads it any more.
    ClientGone,
    Failed(String),
}

impl From<Error> for Stopped {
    fn from(error: Error) -> Self {
        Self::Failed(error.summary().1)
    }
}

impl From<crate::questions::Error> for Stopped {
    fn from(error: crate::questions::Error) -> Self {
        Error::from(error).into()
    }
}

impl From<io::Error> for Stopped {
    fn from(error: io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Export {
    /// An export that fails is cut off: the client's connection breaks, and the line with the summary is missing.
    pub(super) async fn run(self, sender: mpsc::Sender<Piece>) {
        let mut writer = Writer { sender, piece: Vec::new(), summary: Summary::default() };
        match self.write(&mut writer).await {
            Ok(()) => {}
            Err(Stopped::ClientGone) => {
                tracing::info!(app = %self.app, "an export ended: its client is gone");
            }
            Err(Stopped::Failed(why)) => {
                tracing::warn!(app = %self.app, why, "an export was cut off");
                let _ = writer.sender.send(Err(io::Error::other(why))).await;
            }
        }
    }

    async fn write(&self, writer: &mut Writer) -> Result<(), Stopped> {
        let application = self.api.ask(&self.caller).application(&self.app.to_string()).await?;
        let now = self.api.engine.clock().now();
        writer.line("export", &Header::new(self.app, now, self.secrets, self.within))?;
        writer.line("application", &application::render(&application))?;
        if let Some(source) = application.own_source().await? {
            writer.line("source", &SourceLine::from(&source))?;
        }
        self.endpoints(&application, writer).await?;
        let event_types = self.messages(&application, writer).await?;
        for event_type in self.api.ask(&self.caller).event_types() {
            if event_types.contains(&event_type.name) {
                writer.summary.event_types += 1;
                writer.line("eventType", &event_type::render(&event_type))?;
                writer.flush_full().await?;
            }
        }
        let counts = writer.summary;
        writer.line("summary", &SummaryLine { counts, complete: true })?;
        writer.flush().await
    }

    async fn endpoints(
        &self,
        application: &ApplicationQuestions<'_>,
        writer: &mut Writer,
    ) -> Result<(), Stopped> {
        let mut page = Page { after: None, limit: PAGE_ENDPOINTS };
        loop {
            let found = application.endpoints(page, Order::Ascending).await?;
            for endpoint in &found {
                writer.summary.endpoints += 1;
                self.endpoint(endpoint, writer)?;
                writer.flush_full().await?;
            }
            match found.last() {
                Some(last) if found.len() == PAGE_ENDPOINTS => page.after = Some(last.id),
                _ => return Ok(()),
            }
        }
    }

    fn endpoint(&self, endpoint: &Endpoint, writer: &mut Writer) -> Result<(), Stopped> {
        let directory = self.api.engine.directory();
        let headers = directory.headers(endpoint).map_err(Error::from)?;
        let secret = match self.secrets {
            Secrets::Shown => Some(directory.shown_secret(endpoint).map_err(Error::from)?),
            Secrets::Masked => None,
        };
        let shown = serde_json::to_value(endpoint::render(&self.api, endpoint)).map_err(io::Error::other)?;
        let serde_json::Value::Object(shown) = shown else {
            return Err(Stopped::Failed("an endpoint is no object".into()));
        };
        let headers = lines::header_values(&headers, self.secrets);
        writer.line("endpoint", &EndpointLine { endpoint: shown, headers, secret })?;
        Ok(())
    }

    /// Returns the names of the event types that were met.
    async fn messages(
        &self,
        application: &ApplicationQuestions<'_>,
        writer: &mut Writer,
    ) -> Result<BTreeSet<String>, Stopped> {
        let (mut urls, mut event_types) = (HashMap::new(), BTreeSet::new());
        let mut from = ExportCursor::Message(self.range.first);
        loop {
            let query = ExportQuery { app: self.app, from, until: self.range.last, bytes: PAGE_BYTES };
            let page = self.page(application, query).await?;
            if page.is_deleted {
                return Err(Stopped::Failed("the application was deleted meanwhile".into()));
            }
            self.learn_urls(application, &page.items, &mut urls).await?;
            for item in &page.items {
                match item {
                    Exported::Message(message) => {
                        writer.summary.messages += 1;
                        writer.line("message", &MessageLine::from(&**message))?;
                        if event_types.len() < MAX_EVENT_TYPES
                            && !event_types.contains(&*message.content.event_type)
                        {
                            event_types.insert(message.content.event_type.to_string());
                        }
                    }
                    Exported::Delivery(delivery) => {
                        writer.summary.deliveries += 1;
                        writer.line("delivery", &DeliveryLine::new(&self.api.delivery_ids, delivery))?;
                    }
                    Exported::Attempt(attempt) => {
                        writer.summary.attempts += 1;
                        let url = urls.get(&attempt.endpoint).map_or("", String::as_str);
                        lines::push_attempt(&mut writer.piece, attempt, url)?;
                    }
                }
            }
            writer.flush_full().await?;
            match page.next {
                Some(next) => from = next,
                None => return Ok(event_types),
            }
        }
    }

    /// Waits where the store is busy: an export is nobody's first concern.
    async fn page(
        &self,
        application: &ApplicationQuestions<'_>,
        query: ExportQuery,
    ) -> Result<aldaba_store::ExportPage, Stopped> {
        for _ in 0..MAX_BUSY_RETRIES {
            match application.export(query).await {
                Err(crate::questions::Error::Store(StoreError::Busy)) => {
                    tokio::time::sleep(BUSY_RETRY_DELAY).await;
                }
                page => return Ok(page?),
            }
        }
        Err(Stopped::Failed("the store is busy".into()))
    }

    /// Reads the URLs of endpoints that no attempt before has named.
    async fn learn_urls(
        &self,
        application: &ApplicationQuestions<'_>,
        items: &[Exported],
        urls: &mut HashMap<EndpointId, String>,
    ) -> Result<(), Stopped> {
        if urls.len() > MAX_URLS {
            urls.clear();
        }
        let mut unknown: Vec<_> = items
            .iter()
            .filter_map(|item| match item {
                Exported::Attempt(attempt) => Some(attempt.endpoint),
                _ => None,
            })
            .filter(|endpoint| !urls.contains_key(endpoint))
            .collect();
        unknown.sort_unstable();
        unknown.dedup();
        if !unknown.is_empty() {
            let found = application.endpoints_by_id(unknown).await?;
            urls.extend(found.into_iter().map(|endpoint| (endpoint.id, endpoint.config.url)));
        }
        Ok(())
    }
}

/// The lines that were not sent yet.
struct Writer {
    sender: mpsc::Sender<Piece>,
    piece: Vec<u8>,
    summary: Summary,
}

impl Writer {
    fn line(&mut self, kind: &str, body: &impl serde::Serialize) -> io::Result<()> {
        lines::push(&mut self.piece, kind, body)
    }

    async fn flush_full(&mut self) -> Result<(), Stopped> {
        if self.piece.len() >= PAGE_BYTES / 4 { self.flush().await } else { Ok(()) }
    }

    /// Waits until the client has read enough of what was sent before.
    async fn flush(&mut self) -> Result<(), Stopped> {
        let piece = Bytes::from(std::mem::take(&mut self.piece));
        self.sender.send(Ok(piece)).await.map_err(|_| Stopped::ClientGone)
    }
}
