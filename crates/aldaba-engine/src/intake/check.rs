//! Whether payloads fit their event types.

use super::{Intake, NewEvent};
use crate::configuration::{CheckBudget, CheckError, Schemas};
use aldaba_store::ApplicationRef;
use bytes::Bytes;
use std::sync::Arc;

/// Bytes of payloads that are checked against schemas on the thread that has them; more would make others wait.
const MAX_INLINE_CHECK_BYTES: usize = 16 << 10;

impl Intake {
    /// What is wrong with the payloads of events, by their types. A type that nobody has described takes everything.
    /// What is quickly found out is found out at once, the rest aside, and all of it within one allowance.
    pub(super) async fn check(&self, which: &ApplicationRef, events: &[NewEvent]) -> Vec<Option<CheckError>> {
        let mut unfit = vec![None; events.len()];
        let checks = events.iter().enumerate().filter_map(|(index, event)| {
            let schemas = self.event_types.checked(which.org, &event.event_type)?;
            Some(Check { index, schemas, version: event.version.clone(), payload: event.payload.clone() })
        });
        let mut checks: Vec<_> = checks.collect();
        let bytes: usize = checks.iter().map(|check| check.payload.len()).sum();
        if bytes <= MAX_INLINE_CHECK_BYTES {
            let (mut budget, mut done) = (CheckBudget::inline(), 0);
            for check in checks.iter().take_while(|check| check.schemas.is_compiled(check.version.as_deref()))
            {
                let found = check.run(&mut budget);
                if found == Some(CheckError::Unchecked) {
                    break;
                }
                unfit[check.index] = found;
                done += 1;
            }
            checks.drain(..done);
        }
        if checks.is_empty() {
            return unfit;
        }
        let aside = move || {
            let mut budget = CheckBudget::for_request(bytes);
            let check = |check: Check| (check.index, check.run(&mut budget));
            checks.into_iter().map(check).collect::<Vec<_>>()
        };
        for (index, found) in self.checking.run(aside).await {
            unfit[index] = found;
        }
        unfit
    }
}

/// The payload of an event, and what it is to fit.
struct Check {
    /// The place of the event among others.
    index: usize,
    schemas: Arc<Schemas>,
    version: Option<Arc<str>>,
    payload: Bytes,
}

impl Check {
    fn run(&self, budget: &mut CheckBudget) -> Option<CheckError> {
        self.schemas.check_within(self.version.as_deref(), &self.payload, budget).err()
    }
}
