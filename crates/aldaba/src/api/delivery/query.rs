//! Which deliveries a caller asks for.

use crate::api::Error;
use crate::api::request::query::Query;
use crate::questions::DeliveryQuestions;
use aldaba_delivery::Reason;
use aldaba_store::{DeliveryFilter, Phase};

pub(crate) const STATES: &[&str] = &["pending", "history", "delivered", "dead"];

/// The phase that a state names.
pub(crate) fn phase(state: &str) -> Option<Phase> {
    match state {
        "pending" => Some(Phase::Pending),
        "history" => Some(Phase::Settled),
        "delivered" => Some(Phase::Delivered),
        "dead" => Some(Phase::Dead),
        _ => None,
    }
}

/// The filter of a query.
pub(crate) async fn filter(query: &Query, scope: &DeliveryQuestions<'_>) -> Result<DeliveryFilter, Error> {
    let endpoint = match query.text("endpoint") {
        Some(key) => Some(scope.endpoint_id(key).await?),
        None => None,
    };
    Ok(DeliveryFilter {
        endpoint,
        event_type: query.text("eventType").map(str::to_owned),
        reason: query.text("reason").and_then(Reason::named),
        before: query.moment("before"),
        after: query.moment("after"),
    })
}
