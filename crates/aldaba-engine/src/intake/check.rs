//! Whether payloads fit their event types.

use super::{Intake, IntakeItem, SendError};
use crate::configuration::{CheckBudget, CheckError, Schemas};
use aldaba_store::ApplicationRef;
use bytes::Bytes;
use std::sync::Arc;

/// Payload bytes that are checked on the calling thread; more would delay other requests.
const MAX_INLINE_CHECK_BYTES: usize = 16 << 10;

impl Intake {
    /// Sets a refusal on each event whose payload does not fit its type. A type without a schema accepts every payload. Quick
    /// checks run at once, the rest on the blocking pool, all within one budget.
    pub(super) async fn check(&self, which: &ApplicationRef, items: &mut [IntakeItem<'_>]) {
        let checks = items.iter().enumerate().filter_map(|(index, IntakeItem { event, .. })| {
            let schemas = self.event_types.checked(which.org, &event.event_type)?;
            Some(Check { index, schemas, version: event.version.clone(), payload: event.payload.clone() })
        });
        let mut checks: Vec<_> = checks.collect();
        let mut refuse = |index: usize, problem: Option<CheckError>| {
            items[index].refusal = problem.map(SendError::Unfit);
        };
        let bytes: usize = checks.iter().map(|check| check.payload.len()).sum();
        if bytes <= MAX_INLINE_CHECK_BYTES {
            let (mut budget, mut done) = (CheckBudget::inline(), 0);
            for check in checks.iter().take_while(|check| check.schemas.is_compiled(check.version.as_deref()))
            {
                let found = check.run(&mut budget);
                if found == Some(CheckError::Unchecked) {
                    break;
                }
                refuse(check.index, found);
                done += 1;
            }
            checks.drain(..done);
        }
        if checks.is_empty() {
            return;
        }
        let run_all = move || {
            let mut budget = CheckBudget::for_request(bytes);
            let check = |check: Check| (check.index, check.run(&mut budget));
            checks.into_iter().map(check).collect::<Vec<_>>()
        };
        for (index, found) in self.checking.run(run_all).await {
            refuse(index, found);
        }
    }
}

/// The payload of an event, and the schemas of its type.
struct Check {
    /// The event's index.
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
