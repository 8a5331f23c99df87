//! Messages by what is asked for in a body: the same as the list, for who has more to say than a URL holds.

use super::MessageOut;
use crate::api::message;
use crate::api::request::body::Pending;
use crate::api::request::history_query::MOST_TYPES;
use crate::api::request::ids::{self, Ids};
use crate::api::request::json::{Fields, ReadField};
use crate::api::request::query::{Query, WithContent};
use crate::api::response::page::{self, DEFAULT_LIMIT, PageQuery};
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Route, example};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::MessageId;
use aldaba_store::{MessageFilter, TimeRange};
use axum::extract::State;
use axum::response::Response;
use http::Uri;
use utoipa::ToSchema;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/msg/search", Access::Read, search)
            .named("v1.message.search", "Lists the messages that fit, newest first")
            .takes::<SearchIn>()
            .lists_all::<MessageOut<'_>>(),
    ]
}

/// What a search may ask for. Its names are those of the list's query string.
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "for the API's document; the fields are read one by one")]
struct SearchIn {
    #[schema(minimum = 1, maximum = 250)]
    limit: Option<u64>,
    iterator: Option<String>,
    channel: Option<String>,
    tag: Option<String>,
    event_types: Option<Vec<String>>,
    #[schema(value_type = Option<String>, format = DateTime)]
    before: Option<String>,
    #[schema(value_type = Option<String>, format = DateTime)]
    after: Option<String>,
    /// Whether payloads are shown; no, if not given.
    with_content: Option<bool>,
}

example!(SearchIn, {"event_types": ["invoice.paid"], "after": "2025-01-31T12:00:00Z", "limit": 10, "with_content": true});

const FIELDS: &[&str] =
    &["limit", "iterator", "channel", "tag", "event_types", "before", "after", "with_content"];

async fn search(
    State(api): State<Api>,
    caller: Caller,
    Ids(app): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.application(&caller, app).await?;
    let mut fields = pending.read().await?.text().fields()?;
    fields.refuse_others(FIELDS);
    let limit = fields.number("limit", 1, page::MOST as u64);
    let iterator = fields.string("iterator");
    let named = |fields: &mut Fields, name: &str, check: fn(&str) -> Result<(), String>| {
        let text = fields.string(name);
        fields.checked(name, text, |text| check(text))
    };
    let (channel, tag) = (named(&mut fields, "channel", ids::channel), named(&mut fields, "tag", ids::tag));
    let event_types = fields.set_or_empty("event_types", MOST_TYPES, ids::name);
    let within = TimeRange { before: fields.moment("before"), after: fields.moment("after") };
    let content = WithContent(fields.boolean_or("with_content", false));
    fields.finish()?;
    let (beside, backwards) = page::iterator::<MessageId>(iterator.as_deref(), "body")?;
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(DEFAULT_LIMIT);
    let query = Query::of_uri(&Uri::default());
    let mut query = PageQuery { limit, beside, backwards, order: None, query };
    let filter = MessageFilter { event_types, channel, tag };
    message::page(&api, application.id, filter, within, &mut query, content).await
}
