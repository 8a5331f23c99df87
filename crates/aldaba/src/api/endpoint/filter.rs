//! The filter of an endpoint, as callers write it.

use crate::api::request::json::Fields;
use aldaba_api::Json;
use aldaba_delivery::Filter;
use std::sync::Arc;

const FIELD: &str = "filter";

/// The filter, if it is a good one. What is wrong with it is noted.
pub(crate) fn checked(fields: &mut Fields, given: Option<&Json>) -> Option<Arc<Filter>> {
    match Filter::parse(given?.text()) {
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
