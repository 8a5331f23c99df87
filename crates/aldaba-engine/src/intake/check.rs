//! Whether payloads fit their event types.

use super::{Intake, NewEvent};
use crate::configuration::{Allowance, Schemas, Unfit};
use aldaba_store::ApplicationRef;
use bytes::Bytes;
use std::sync::Arc;

/// Bytes of payloads that are checked against schemas on the thread that has them; more would make others wait.
const CHECKED_AT_ONCE: usize = 16 << 10;

impl Intake {
    /// What is wrong with the payloads of events, by their types. A type that nobody has described takes everything.
    /// What is quickly found out is found out at once, the rest aside, and all of it within one allowance.
    pub(super) async fn check(&self, which: &ApplicationRef, events: &[NewEvent]) -> Vec<Option<Unfit>> {
        let mut unfit = vec![None; events.len()];
        let checks = events.iter().enumerate().filter_map(|(place, event)| {
            let schemas = self.event_types.checked(which.org, &event.event_type)?;
            Some(Check { place, schemas, version: event.version.clone(), payload: event.payload.clone() })
        });
        let mut checks: Vec<_> = checks.collect();
        let bytes: usize = checks.iter().map(|check| check.payload.len()).sum();
        if bytes <= CHECKED_AT_ONCE {
            let (mut allowance, mut done) = (Allowance::at_once(), 0);
            for check in checks.iter().take_while(|check| check.schemas.are_ready(check.version.as_deref())) {
                let found = check.run(&mut allowance);
                if found == Some(Unfit::Unchecked) {
                    break;
                }
                unfit[check.place] = found;
                done += 1;
            }
            checks.drain(..done);
        }
        if checks.is_empty() {
            return unfit;
        }
        let aside = move || {
            let mut allowance = Allowance::of_a_request(bytes);
            let check = |check: Check| (check.place, check.run(&mut allowance));
            checks.into_iter().map(check).collect::<Vec<_>>()
        };
        for (place, found) in self.checking.run(aside).await {
            unfit[place] = found;
        }
        unfit
    }
}

/// The payload of an event, and what it is to fit.
struct Check {
    /// The place of the event among others.
    place: usize,
    schemas: Arc<Schemas>,
    version: Option<Arc<str>>,
    payload: Bytes,
}

impl Check {
    fn run(&self, allowance: &mut Allowance) -> Option<Unfit> {
        self.schemas.check_within(self.version.as_deref(), &self.payload, allowance).err()
    }
}
