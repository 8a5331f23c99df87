//! Sends a message to one endpoint again, by hand; and the same request as a line for a shell.

use crate::actions;
use crate::api::Access;
use crate::dashboard::answer::see_other;
use crate::dashboard::components::{Done, curl};
use crate::dashboard::fault::Fault;
use crate::dashboard::route::PageRoute;
use crate::dashboard::visit::{Pairs, Visit};
use aldaba_store::{Attempt, Endpoint, Message};
use axum::response::Response;

/// A longer payload makes no line for a shell.
const MOST_COPIED: usize = 100 * 1024;

pub(super) fn routes() -> Vec<PageRoute> {
    let path = "/dashboard/apps/{app}/messages/{message}/endpoints/{endpoint}/resend";
    vec![PageRoute::post(path, Access::Attempt, resend)]
}

async fn resend(visit: Visit, form: Pairs) -> Result<Response, Fault> {
    let app = visit.application().await?;
    let message = app.message(visit.parameter("message")).await?;
    let endpoint = app.endpoint(visit.parameter("endpoint")).await?;
    let made = actions::resend(&visit.api, &visit.caller, &app, (&message, &endpoint), None).await?;
    let done = match made {
        Some(attempt) if attempt.success => Done::Resent,
        Some(_) => Done::ResentInVain,
        None => Done::ResendRuns,
    };
    let here = visit.to().message(message.app, message.id);
    let then = form.get("then").filter(|path| crate::dashboard::paths::is_own(path));
    Ok(see_other(&done.at(then.unwrap_or(&here))))
}

/// The newest attempt as a curl command, with the headers it had. `None`: who asks may not see them, or it is too long.
pub(super) async fn curl_of(
    visit: &Visit,
    message: &Message,
    endpoint: &Endpoint,
    attempt: Option<&Attempt>,
) -> Result<Option<String>, Fault> {
    let Some(attempt) = attempt else { return Ok(None) };
    let payload = &message.content.payload;
    if !visit.may(Access::Read) || message.expunged || payload.len() > MOST_COPIED {
        return Ok(None);
    }
    let sent = visit.api.engine.sent_headers(endpoint, message, attempt).await?;
    Ok(Some(curl(&endpoint.config.url, &sent.shown, payload)))
}
