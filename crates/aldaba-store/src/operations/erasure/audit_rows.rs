//! The audit log keeps who changed what and when, and loses the values. Its last row about the application says what was
//! removed.

use super::step::{Eraser, PartEnd, ROWS_AT_ONCE};
use crate::operations::Result;
use crate::operations::audit;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::{AuditAction, AuditEntry, ErasedCounts, FieldChange};
use aldaba_delivery::AuditId;
use serde_json::{Value, json};

/// The audit action of a key of the application: later rows about the key name no application.
const KEY_MADE: &str = "api_key.create";
/// The resource of such actions is a host.
const OF_HOSTS: &str = "host.";

statements! {
    ROWS = "SELECT id, action, resource, fields FROM audit
        WHERE org = ?1 AND app = ?2 AND app IS NOT NULL AND id > ?3 ORDER BY id LIMIT ?4";
    OF_KEY = "SELECT id FROM audit WHERE org = ?1 AND resource = ?2 ORDER BY id LIMIT ?3";
    ONE = format!("SELECT {} FROM audit WHERE id = ?1", audit::COLUMNS);
    /// The name of a key is the customer's if the key was theirs. A session of the portal names a person.
    REDACT = "UPDATE audit SET changes = NULL, fields = ?2, resource = ?3, actor_name = CASE
            WHEN actor_kind = 2 THEN NULL
            WHEN actor_kind = 0 AND NOT EXISTS (
                SELECT 1 FROM api_key WHERE api_key.id = audit.actor_id AND api_key.app IS NULL
            ) THEN NULL
            ELSE actor_name END
        WHERE id = ?1";
    FORGET_VALUES = "UPDATE audit SET changes = NULL WHERE id = ?1";
}

pub(super) fn redact(eraser: &mut Eraser<'_>) -> Result<PartEnd> {
    eraser.all_of(|eraser| {
        let (org, app) = (eraser.erasure.org, eraser.erasure.app);
        let after = eraser.erasure.audited.unwrap_or(AuditId::from_bytes([0; 20]));
        let found: Vec<(AuditId, String, String, Vec<String>)> =
            eraser.tx.all(&ROWS, values![org, app, after, ROWS_AT_ONCE])?;
        for (id, action, resource, fields) in &found {
            eraser.erasure.audited = Some(*id);
            if *id != eraser.erasure.entry {
                redact_one(eraser, *id, (action, resource), fields)?;
            }
        }
        Ok(found.len())
    })
}

fn redact_one(
    eraser: &mut Eraser<'_>,
    id: AuditId,
    (action, resource): (&str, &str),
    fields: &[String],
) -> Result<()> {
    let tx = eraser.tx;
    // What stands behind a dot is the customer's own: the name of a header.
    let mut names: Vec<String> =
        fields.iter().map(|name| name.split('.').next().unwrap_or_default().to_owned()).collect();
    names.dedup();
    let kept = if action.starts_with(OF_HOSTS) { "" } else { resource };
    eraser.erasure.removed.audit += tx.execute(&REDACT, values![id, names, kept])? as u64;
    if action == KEY_MADE {
        // A key is revoked at most once, and renamed now and then.
        let more: Vec<AuditId> = tx.all(&OF_KEY, values![eraser.erasure.org, resource, ROWS_AT_ONCE])?;
        for id in more {
            tx.execute(&FORGET_VALUES, values![id])?;
        }
    }
    Ok(())
}

/// Who has erased it, when it was over, and how much it was.
pub(super) fn note_end(eraser: &Eraser<'_>) -> Result<()> {
    let Some(start) = eraser.tx.one::<AuditEntry>(&ONE, values![eraser.erasure.entry])? else {
        return Ok(());
    };
    let ErasedCounts { messages, deliveries, attempts, endpoints, others, audit: rows } =
        eraser.erasure.removed;
    let removed = [
        ("messages", messages),
        ("deliveries", deliveries),
        ("attempts", attempts),
        ("endpoints", endpoints),
        ("others", others),
        ("auditRows", rows),
    ];
    let changes = removed.map(|(field, count)| FieldChange {
        field: field.into(),
        before: json!(count),
        after: Value::Null,
        cut: false,
    });
    let action = AuditAction { name: "application.erased".into(), ..start.action };
    let entry = AuditEntry { id: eraser.step.entry, action: action.with_changes(changes.into()), ..start };
    audit::note(eraser.tx, &entry, 1)
}
