//! Who changed what: everything that somebody did is in the audit log once, and nothing else is.

use super::Findings;
use crate::log::{Log, SourceAction};
use aldaba_delivery::Reason;
use aldaba_store::operations::everything::Everything;
use aldaba_store::{DeliveryState, DeliveryStatus, Trigger};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn every_change_has_its_row(disk: &Everything, log: &Log, found: &mut Findings) {
    let mut rows: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for entry in &disk.audit {
        *rows.entry((&entry.action.name, &entry.action.resource)).or_default() += entry.count;
    }
    let counted = |action: &str, resource: &str| rows.get(&(action, resource)).copied().unwrap_or(0);
    // An address is nobody's action.
    for endpoint in disk.endpoints.values().filter(|endpoint| !endpoint.direct) {
        let id = endpoint.id.to_string();
        found.require(counted("endpoint.create", &id) == 1, "audit", || {
            format!("{id} was made, and the audit log says so {} times", counted("endpoint.create", &id))
        });
        let deleted = counted("endpoint.delete", &id);
        // Those of a deleted application go without a word of their own.
        let with_it = deleted == 0 && !disk.has_application(endpoint.app);
        found.require(with_it || deleted == u32::from(endpoint.deleted), "audit", || {
            format!("{id} is deleted: {}; the audit log says so {deleted} times", endpoint.deleted)
        });
    }
    for source in log.sources.iter().map(|commit| commit.source).collect::<BTreeSet<_>>() {
        let id = source.to_string();
        let made = |is_so: fn(&SourceAction) -> bool| {
            let commits = log.sources.iter().filter(|commit| commit.source == source);
            commits.filter(|commit| is_so(&commit.action)).count()
        };
        let named = ["source.create", "source.update"].map(|action| counted(action, &id));
        let deleted = made(|action| *action == SourceAction::Deleted);
        found.require(
            named[0] == 1
                && (named[0] + named[1]) as usize == made(|action| matches!(action, SourceAction::Is(_)))
                && counted("source.delete", &id) as usize == deleted,
            "audit",
            || format!("{id}: the audit log has another number of its changes"),
        );
    }
    // What waits for an endpoint that is deleted ends so too.
    let gone: BTreeSet<_> =
        disk.endpoints.values().filter(|endpoint| endpoint.deleted).map(|endpoint| endpoint.id).collect();
    let is_cancelled = |delivery: &&DeliveryStatus| {
        matches!(delivery.state, DeliveryState::Dead { reason: Reason::Cancelled, .. })
            && !gone.contains(&delivery.endpoint)
    };
    let cancelled = disk.deliveries.iter().filter(is_cancelled).count();
    let manual = disk.attempts.iter().filter(|attempt| attempt.trigger == Trigger::Manual).count();
    for (action, made) in [("delivery.cancel", cancelled), ("message.resend", manual)] {
        let noted = counted(action, "");
        // What was cancelled may have been opened again, or delivered manually.
        let fits = if action == "delivery.cancel" { noted as usize >= made } else { noted as usize == made };
        found.require(fits, "audit", || format!("{action}: {made} were made, the audit log has {noted}"));
    }
}
