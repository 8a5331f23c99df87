//! `ordering` and `onExhausted` of an endpoint.

use crate::api::request::json::Fields;
use aldaba_delivery::{OnExhausted, Ordering};

pub(crate) fn read(fields: &mut Fields) -> Ordering {
    let given = fields.string("ordering");
    let ordering = fields.checked("ordering", given, |name| known(name, &Ordering::NAMES));
    let given = fields.string("onExhausted");
    let names = OnExhausted::ALL.map(OnExhausted::name);
    let then = fields.checked("onExhausted", given, |name| known(name, &names));
    let then = OnExhausted::ALL.into_iter().find(|known| then.as_deref() == Some(known.name()));
    match ordering.as_deref() {
        Some("fifo") => Ordering::Fifo(then.unwrap_or_default()),
        _ if then.is_some() => {
            fields.problem("onExhausted", "needs `\"ordering\": \"fifo\"`; without it nothing is held up");
            Ordering::None
        }
        _ => Ordering::None,
    }
}

fn known(name: &str, names: &[&str]) -> Result<(), String> {
    match names.contains(&name) {
        true => Ok(()),
        false => Err(format!("is `{}` or `{}`, not `{name}`", names[0], names[1])),
    }
}
