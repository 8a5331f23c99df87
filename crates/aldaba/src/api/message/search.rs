//! Lists messages by a filter in the body, which may be longer than a URL.

use crate::api::message;
use crate::api::request::body::Pending;
use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::request::query::{Query, WithContent};
use crate::api::response::page::{self, DEFAULT_LIMIT, PageQuery};
use crate::api::routing::auth::Access;
use crate::api::routing::route::Route;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::{Message, MessageSearch};
use aldaba_delivery::MessageId;
use aldaba_store::{MessageFilter, TimeRange};
use axum::extract::State;
use axum::response::Response;

const _: () = assert!(aldaba_api::MAX_PAGE == page::MAX_LIMIT);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/app/{app_id}/msg/search", Access::Read, search)
            .named("v1.message.search", "Lists the matching messages, newest first")
            .takes::<MessageSearch>()
            .lists_all::<Message>(),
    ]
}

async fn search(
    State(api): State<Api>,
    caller: Caller,
    Ids(app): Ids<String>,
    pending: Pending,
) -> Result<Response, Error> {
    let application = api.ask(&caller).application(&app).await?;
    let search: MessageSearch = pending.read().await?.text().parse(false)?.finish()?;
    let moment = |given: &Option<String>| json::given_moment(given.as_ref());
    let within = TimeRange { before: moment(&search.before), after: moment(&search.after) };
    let content = WithContent(search.with_content.unwrap_or_default());
    let (beside, backwards) = page::iterator::<MessageId>(search.iterator.as_deref(), "body")?;
    let limit = search.limit.map_or(DEFAULT_LIMIT, usize::from);
    let mut query = PageQuery { limit, beside, backwards, order: None, query: Query::default() };
    let filter = MessageFilter {
        event_types: search.event_types.unwrap_or_default(),
        channel: search.channel,
        tag: search.tag,
    };
    message::page(&api, &application, filter, within, &mut query, content).await
}
