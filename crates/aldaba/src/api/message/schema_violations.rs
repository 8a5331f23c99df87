//! The problems of a payload under its event type's schema.

use crate::api::response::error::Problem;
use aldaba_engine::{CheckError, PayloadError};

/// `payload`: its location in the request.
pub(crate) fn problems(unfit: &CheckError, payload: &[&str]) -> Vec<Problem> {
    match unfit {
        CheckError::Version { known } => {
            let message = format!(
                "the event type has no schema of this version, and its payloads are checked; there are: {}",
                known.join(", ")
            );
            vec![Problem::value(&["body", "version"], message)]
        }
        CheckError::Payload { version, misfit } => of_payload(version, misfit, payload),
        CheckError::Unchecked => {
            vec![Problem::value(payload, "was not checked: there was no time left")]
        }
        CheckError::Schema { version, why } => {
            let message = format!(
                "cannot be checked: version {version} of the event type's schema cannot be used ({why})"
            );
            vec![Problem::value(payload, message)]
        }
    }
}

fn of_payload(version: &str, misfit: &PayloadError, payload: &[&str]) -> Vec<Problem> {
    let whole = |message: String| vec![Problem::value(payload, message)];
    match misfit {
        PayloadError::Problems { problems, more } => {
            let named = problems.iter().map(|problem| {
                let place = problem.path.iter().map(String::as_str);
                let loc: Vec<_> = payload.iter().copied().chain(place).collect();
                Problem::value(&loc, format!("{} (schema version {version})", problem.why))
            });
            let rest = match more {
                Some(0) => Vec::new(),
                Some(more) => whole(format!("and {more} more problems that are not listed")),
                None => {
                    whole("there may be more problems: the payload is too large to list all of them".into())
                }
            };
            named.chain(rest).collect()
        }
        PayloadError::Somewhere => whole(format!(
            "does not fit version {version} of the event type's schema; the payload is too large, or the schema has too \
             many alternatives, to say where"
        )),
        PayloadError::TooCostly => whole(format!(
            "checking it against version {version} of the event type's schema takes too long; make the payload smaller, or \
             the schema simpler (fewer alternatives at one place, a `type` in each, simpler patterns)"
        )),
        PayloadError::Unreadable(error) => {
            whole(format!("cannot be checked against version {version} of the event type's schema: {error}"))
        }
    }
}
