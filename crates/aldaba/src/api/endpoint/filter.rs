//! Reads the filter of an endpoint.

use crate::api::request::json::Fields;
use aldaba_delivery::Filter;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::sync::Arc;

const FIELD: &str = "filter";

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default, borrow)]
    filter: Option<&'a RawValue>,
}

/// The text of the filter in a body: a parsed value would round its numbers. `Err`: the body has it twice.
pub(crate) fn text(body: &[u8]) -> Result<Option<&str>, serde_json::Error> {
    serde_json::from_slice::<Body<'_>>(body).map(|body| body.filter.map(RawValue::get))
}

/// Reads a valid filter from a body. `body`: the source of `fields`.
pub(crate) fn read(fields: &mut Fields, body: &[u8]) -> Option<Arc<Filter>> {
    if !fields.has(FIELD) {
        return None;
    }
    let Ok(text) = text(body) else {
        fields.problem(FIELD, "is given twice");
        return None;
    };
    match Filter::parse(text?) {
        Ok(filter) => Some(Arc::new(filter)),
        Err(errors) => {
            for error in errors {
                let place: Vec<_> =
                    [FIELD].into_iter().chain(error.location.iter().map(String::as_str)).collect();
                fields.problem_at(&place, error.why);
            }
            None
        }
    }
}
