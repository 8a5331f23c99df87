//! Changes that somebody makes, each handed to what it is about. Expected conflicts are looked for first, so that none is an
//! error.

use super::{
    Batch, Result, alert, api_key, application, attempt, audit, delivery, endpoint, erasure, event_type,
    gate, health, keys, mail, message, notice, policy, profile, replay, setting, source, token,
};
use crate::{ActorKind, AuditEntry, Change, Changed, IdempotencyKey};

/// Makes a change, with its notices and its row of the audit log.
pub(crate) fn change(batch: &mut Batch<'_>, change: &Change, entry: Option<&AuditEntry>) -> Result<Changed> {
    let before = match entry.and_then(|_| change.subject()) {
        Some(subject) => audit::values_of(batch.tx, subject)?,
        None => None,
    };
    let owner_before = mail::owner_before(batch.tx, change)?;
    let by_portal = entry.is_some_and(|entry| entry.actor.identity.kind() == ActorKind::PortalToken);
    if !mail::has_room(batch.tx, change, owner_before.as_deref(), by_portal)? {
        return Ok(Changed::TooManyAddresses);
    }
    let changed = make(batch, change)?;
    if changed.is_change() {
        mail::after_change(batch, change, owner_before.as_deref(), by_portal)?;
        notice::keep(batch.tx, batch.numbers, change.notices())?;
        mail::keep(batch.tx, batch.numbers, change.mails())?;
        if let Some(entry) = entry {
            audit::note(batch.tx, &entry.with_values_of(change, before.as_ref()), entry.count)?;
        }
    }
    Ok(changed)
}

fn make(batch: &mut Batch<'_>, change: &Change) -> Result<Changed> {
    let (tx, rules) = (batch.tx, batch.rules);
    let once =
        |owner: &[u8; 20],
         key: &Option<IdempotencyKey>,
         id: &[u8; 20],
         make: &dyn Fn() -> Result<Changed>| { make_once(batch.tx, owner, key.as_ref(), id, make) };
    match change {
        Change::CreateApplication { application: new, idempotency } => {
            let make = || application::create(tx, new);
            once(new.org.as_bytes(), idempotency, new.id.as_bytes(), &make)
        }
        Change::UpdateApplication { application, was } => application::update(tx, application, *was),
        Change::DeleteApplication { app, at } => match source::of_application(tx, *app)? {
            Some(_) => Ok(Changed::InUse { endpoint: None }),
            None => application::delete(tx, *app, *at),
        },
        Change::CreateEndpoint { endpoint: new, idempotency, .. } => {
            let make = || endpoint::create(tx, rules, new);
            once(new.app.as_bytes(), idempotency, new.id.as_bytes(), &make)
        }
        Change::UpdateEndpoint { endpoint, was, resume, .. } => {
            endpoint::update(tx, rules, endpoint, was, *resume)
        }
        Change::ResumeEndpoint { app, endpoint, at, recovery, .. } => {
            let replay = recovery.as_ref().map(|recovery| &recovery.replay);
            let key = recovery.as_ref().and_then(|recovery| recovery.idempotency);
            let id = replay.map_or(*endpoint.as_bytes(), |replay| *replay.id.as_bytes());
            once(app.as_bytes(), &key, &id, &|| health::resume(tx, rules, (*app, *endpoint), *at, replay))
        }
        Change::ReleaseGates { gates } => gate::release(tx, gates),
        Change::DeleteEndpoint { app, endpoint, at, .. } => endpoint::delete(tx, *app, *endpoint, *at),
        Change::ReplaceSecrets {
            app,
            endpoint,
            was,
            sealed,
            certificate_expires_at: expiry,
            at,
            idempotency,
            ..
        } => {
            let make = || endpoint::replace_secrets(tx, *app, *endpoint, (was, sealed, *expiry), *at);
            once(app.as_bytes(), idempotency, endpoint.as_bytes(), &make)
        }
        Change::DateCertificates { dates } => endpoint::date_certificates(tx, dates),
        Change::StartReplay { replay: new, idempotency } => {
            once(new.app.as_bytes(), idempotency, new.id.as_bytes(), &|| replay::create(tx, new))
        }
        Change::StartErasure { erasure: new, source, idempotency } => {
            once(new.org.as_bytes(), idempotency, new.id.as_bytes(), &|| erasure::start(tx, new, *source))
        }
        Change::NoteExport { app } => token::grant_portal_access(tx, *app),
        Change::CancelReplay { org, replay, at } => replay::cancel(tx, *org, *replay, *at),
        Change::ForgetNotices { org, notices } => notice::forget(tx, batch.numbers, *org, notices),
        Change::ExpungeMessage { app, message } => message::expunge(tx, *app, *message),
        Change::ExpungeAttempt { message, attempt, .. } => attempt::expunge(tx, *message, *attempt),
        Change::CreatePolicy { policy } => policy::create(tx, policy),
        Change::ReplacePolicy { policy } => policy::replace(tx, policy),
        Change::DeletePolicy { org, name } => policy::delete(tx, *org, name),
        Change::CreateProfile { profile } => profile::create(tx, profile),
        Change::ReplaceProfile { profile } => profile::replace(tx, profile),
        Change::DeleteProfile { org, name } => profile::delete(tx, *org, name),
        Change::CreateApiKey { key, idempotency } => {
            once(key.org.as_bytes(), idempotency, key.id.as_bytes(), &|| api_key::create(tx, key))
        }
        Change::RenameApiKey { org, id, name } => api_key::rename(tx, *org, *id, name),
        Change::RevokeApiKey { org, id } => api_key::revoke(tx, *org, *id),
        Change::NoteKeyUses { uses } => api_key::note_uses(tx, uses),
        Change::WriteAlerts { fired, resolved, .. } => alert::write(tx, fired, resolved),
        Change::WritePendingAlerts { pending, over, judged_at } => {
            alert::write_pending(tx, pending, over, *judged_at)
        }
        Change::SettleEndpointAlerts { endpoints, at } => {
            alert::settle_of_endpoints(tx, rules, endpoints, *at)
        }
        Change::AcknowledgeAlert { org, alert, at, by } => alert::acknowledge(tx, *org, *alert, *at, by),
        Change::PutSetting { name, value } => setting::put(tx, name, value),
        Change::Reschedule { deliveries } => delivery::reschedule(tx, deliveries),
        Change::SequenceDue { now, limit } => delivery::sequence_due(tx, batch.numbers, *now, *limit),
        Change::GrantPortalAccess { app } => token::grant_portal_access(tx, *app),
        Change::EndPortalTokens { app, cuts, at } => token::end_portal_tokens(tx, *app, cuts, *at),
        Change::RevokeToken { token } => token::revoke(tx, token),
        Change::WriteEventTypes(change) => {
            let make = || event_type::write(tx, change);
            once(change.org.as_bytes(), &change.idempotency, change.resource.as_bytes(), &make)
        }
        Change::CreateSource { source: new, application, idempotency } => {
            let make = || source::create(tx, new, application);
            once(new.org.as_bytes(), idempotency, new.id.as_bytes(), &make)
        }
        Change::UpdateSource { source, was } => source::replace(tx, source, *was),
        Change::RotateSourceToken { source, was, idempotency } => {
            let make = || source::replace(tx, source, *was);
            once(source.org.as_bytes(), idempotency, source.id.as_bytes(), &make)
        }
        Change::DeleteSource { source, app, at } => source::delete(tx, *source, *app, *at),
    }
}

/// Makes a change unless its key has been used, and keeps the key if something was made.
fn make_once(
    tx: &dyn super::Transaction,
    owner: &[u8; 20],
    idempotency: Option<&IdempotencyKey>,
    id: &[u8; 20],
    make: &dyn Fn() -> Result<Changed>,
) -> Result<Changed> {
    let Some(used) = idempotency else { return make() };
    if let Some(resource) = keys::find_request(tx, owner, &used.digest)? {
        return Ok(Changed::Repeated { resource });
    }
    let changed = make()?;
    if changed.made_something() {
        keys::keep_request(tx, owner, used, id)?;
    }
    Ok(changed)
}
