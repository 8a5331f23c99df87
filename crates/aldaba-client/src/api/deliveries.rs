//! Deliveries: a message on its way to one endpoint, and the dead letter.

use crate::api::applications::App;
use crate::api::attempts::Attempt;
use crate::call::Call;
use crate::listing::{Listing, Order};
use crate::{Client, Error};
use aldaba_api::words;
use aldaba_api::{Timestamp, answer, input};
use futures_util::Stream;

words! {
    /// How far a delivery is.
    DeliveryState {
        /// It waits, or is on its way.
        Pending = "pending",
        /// Its receiver has it.
        Delivered = "delivered",
        /// It ended without success.
        Dead = "dead",
        /// In filters: everything that has ended.
        History = "history",
    }
}

answer! {
    /// A delivery.
    Delivery {
        /// Its id.
        id: String,
        /// The application.
        app_id: String,
        /// The endpoint.
        endpoint_id: String,
        /// The message.
        msg_id: String,
        /// The message's type.
        event_type: Option<String>,
        /// How far it is.
        state: DeliveryState,
        /// Why, as a word.
        reason: String,
        /// The final reason for people; only where it is dead.
        reason_text: Option<String>,
        /// Why, in words.
        explanation: String,
        /// Attempts that were made.
        attempt_count: u32,
        /// Retries that were planned: 1 after the first failure.
        retry_count: u32,
        /// When it is tried next.
        next_attempt: Option<Timestamp>,
        /// The same, once there has been an attempt.
        next_retry_at: Option<Timestamp>,
        /// When it is given up.
        stop_date: Option<Timestamp>,
        /// When it was last tried.
        last_attempt_at: Option<Timestamp>,
        /// Of the last answer.
        status_code: Option<u16>,
        /// How long that took.
        response_duration_ms: Option<u64>,
        /// Why the last attempt failed.
        error: Option<String>,
        /// Which part of the request took too long, where the error is a timeout.
        error_detail: Option<String>,
        /// When the message was accepted.
        created_at: Timestamp,
        /// When it ended.
        settled_at: Option<Timestamp>,
        /// It was taken out of the dead letter; or its endpoint was deleted before it ended.
        discarded: bool,
        /// The newest attempts, only where one delivery is shown.
        attempts: Option<Vec<Attempt>>,
    }
}

input! {
    /// Which deliveries.
    DeliveryFilter {
        /// In this state.
        state: Option<DeliveryState>,
        /// To this endpoint.
        endpoint: Option<String>,
        /// Of this event type.
        event_type: Option<String>,
        /// That ended for this reason.
        reason: Option<String>,
        /// Of messages accepted before.
        before: Option<Timestamp>,
        /// Of messages accepted after.
        after: Option<Timestamp>,
        /// Which come first.
        order: Option<Order>,
    }
}

input! {
    /// Which dead ones.
    DeadLetterFilter {
        /// Of this application.
        app: Option<String>,
        /// To this endpoint.
        endpoint: Option<String>,
        /// Of this event type.
        event_type: Option<String>,
        /// That ended for this reason.
        reason: Option<String>,
        /// Of messages accepted before.
        before: Option<Timestamp>,
        /// Of messages accepted after.
        after: Option<Timestamp>,
        /// Which come first.
        order: Option<Order>,
    }
}

/// The deliveries of an application.
#[derive(Clone, Debug)]
pub struct Deliveries {
    app: App,
}

/// One delivery.
#[derive(Clone, Debug)]
pub struct AppDelivery {
    client: Client,
    app: String,
    id: String,
}

impl Client {
    /// What ended without success, of all applications or of one.
    pub fn dead_letter(&self) -> Listing<Delivery, DeadLetterFilter> {
        Listing::new(self, &["dead-letter"])
    }
}

impl App {
    /// Its deliveries.
    #[must_use]
    pub fn deliveries(&self) -> Deliveries {
        Deliveries { app: self.clone() }
    }

    /// One of its deliveries.
    #[must_use]
    pub fn delivery(&self, id: impl Into<String>) -> AppDelivery {
        AppDelivery { client: self.client.clone(), app: self.id.clone(), id: id.into() }
    }
}

impl Deliveries {
    /// A page of them: what waits first, of everything else the newest.
    pub fn list(&self) -> Listing<Delivery, DeliveryFilter> {
        Listing::new(&self.app.client, &["app", &self.app.id, "delivery"])
    }

    /// All of them.
    pub fn list_all(&self) -> impl Stream<Item = Result<Delivery, Error>> + Send + Unpin + use<> {
        self.list().all()
    }

    /// Discards what is asked for, as many as one request does; `done` says whether that was all.
    pub async fn discard(&self, discard: &Discard) -> Result<Discarded, Error> {
        let call = Call::post(&["app", &self.app.id, "delivery", "discard"]);
        call.json(discard).answer(&self.app.client).await
    }
}

impl AppDelivery {
    fn path<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        [&["app", &self.app, "delivery", &self.id], more].concat()
    }

    /// Shows it with its newest attempts.
    pub async fn get(&self) -> Result<Delivery, Error> {
        Call::get(&self.path(&[])).answer(&self.client).await
    }

    /// Its attempts, newest first.
    pub fn attempts(&self) -> Listing<Attempt, WithContent> {
        Listing::new(&self.client, &self.path(&["attempt"]))
    }

    /// Takes it out of the dead letter, or gives it up.
    pub async fn discard(&self) -> Result<(), Error> {
        Call::delete(&self.path(&[])).done(&self.client).await
    }
}

input! {
    /// How much of attempts is shown.
    WithContent {
        /// Whether bodies of answers are shown; yes, if not given.
        #[serde(rename = "with_content")]
        with_content: Option<bool>,
    }
}

input! {
    /// What is discarded.
    Discard {
        /// `dead`, if not given, or `pending`.
        state: Option<DeliveryState>,
        /// To this endpoint.
        endpoint: Option<String>,
        /// Of this event type.
        event_type: Option<String>,
        /// That ended for this reason.
        reason: Option<String>,
        /// Of messages accepted before.
        before: Option<Timestamp>,
        /// Of messages accepted after.
        after: Option<Timestamp>,
        /// Where to go on.
        iterator: Option<String>,
    }
}

answer! {
    /// What was discarded.
    Discarded {
        /// So many.
        discarded: u64,
        /// Waiting ones that were being sent, and were left alone.
        in_flight: u64,
        /// That was all.
        done: bool,
        /// Where to go on.
        iterator: Option<String>,
    }
}
