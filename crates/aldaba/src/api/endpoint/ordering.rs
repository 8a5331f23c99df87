//! `ordering` and `onExhausted` of an endpoint.

use crate::api::request::json::Fields;
use aldaba_api::Ordering as Word;
use aldaba_delivery::{OnExhausted, Ordering};

pub(crate) fn checked(
    fields: &mut Fields,
    ordering: Option<&Word>,
    then: Option<&aldaba_api::OnExhausted>,
) -> Ordering {
    let then = then.and_then(|then| OnExhausted::ALL.into_iter().find(|known| known.name() == then.as_str()));
    if ordering == Some(&Word::Fifo) {
        return Ordering::Fifo(then.unwrap_or_default());
    }
    if then.is_some() {
        fields.problem("onExhausted", "needs `\"ordering\": \"fifo\"`; without it nothing is held up");
    }
    Ordering::None
}
