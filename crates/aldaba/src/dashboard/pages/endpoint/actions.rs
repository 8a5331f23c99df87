//! What a person does with an endpoint: resume it, turn it off and on.

use crate::api::{Access, DEFAULT_REPLAY_RATE};
use crate::dashboard::answer::see_other;
use crate::dashboard::components::Done;
use crate::dashboard::fault::Fault;
use crate::dashboard::route::PageRoute;
use crate::dashboard::visit::{Pairs, Visit};
use aldaba_engine::{EndpointHeaders, NewEndpoint};
use aldaba_store::Endpoint;
use axum::response::Response;

pub(super) fn routes() -> Vec<PageRoute> {
    vec![
        PageRoute::post("/dashboard/apps/{app}/endpoints/{endpoint}/resume", Access::Manage, resume),
        PageRoute::post(
            "/dashboard/apps/{app}/endpoints/{endpoint}/resume-and-recover",
            Access::Manage,
            resume_and_recover,
        ),
        PageRoute::post("/dashboard/apps/{app}/endpoints/{endpoint}/disable", Access::Manage, disable),
        PageRoute::post("/dashboard/apps/{app}/endpoints/{endpoint}/enable", Access::Manage, enable),
    ]
}

async fn named(visit: &Visit) -> Result<Endpoint, Fault> {
    Ok(visit.application().await?.endpoint(visit.parameter("endpoint")).await?)
}

fn back(visit: &Visit, endpoint: &Endpoint, done: Done) -> Response {
    see_other(&done.at(&visit.to().endpoint(endpoint.app, endpoint.id)))
}

async fn resume(visit: Visit, _: Pairs) -> Result<Response, Fault> {
    let endpoint = named(&visit).await?;
    let outage = visit.directory().resume_endpoint(&endpoint).await?;
    Ok(back(&visit, &endpoint, outage.map_or(Done::NothingToResume, |_| Done::Resumed)))
}

async fn resume_and_recover(visit: Visit, _: Pairs) -> Result<Response, Fault> {
    let endpoint = named(&visit).await?;
    let outage = visit.directory().resume_and_recover(&endpoint, DEFAULT_REPLAY_RATE, None).await?;
    let done = match outage {
        None => Done::NothingToResume,
        Some(outage) if outage.recovery.is_some() => Done::ResumedAndRecovering,
        Some(_) => Done::Resumed,
    };
    Ok(back(&visit, &endpoint, done))
}

async fn disable(visit: Visit, _: Pairs) -> Result<Response, Fault> {
    turn(&visit, true).await
}

async fn enable(visit: Visit, _: Pairs) -> Result<Response, Fault> {
    turn(&visit, false).await
}

/// Turning on resumes an endpoint, too.
async fn turn(visit: &Visit, off: bool) -> Result<Response, Fault> {
    let endpoint = named(visit).await?;
    let mut config = endpoint.config.clone();
    config.disabled = off;
    let new = NewEndpoint { config, credentials: None, headers: EndpointHeaders::default(), key: None };
    visit.directory().update_endpoint(&endpoint, new, None, !off).await?;
    Ok(back(visit, &endpoint, if off { Done::TurnedOff } else { Done::TurnedOn }))
}
