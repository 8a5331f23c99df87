//! Changes of the directory. Expected conflicts are looked for first, so that none is an error.

use super::batch::Rules;
use super::codes::Code;
use super::credentials;
use super::due_times;
use super::event_type;
use super::expunge;
use super::health;
use super::keys::Keys;
use super::names;
use super::notice;
use super::ordering;
use super::places;
use super::policy;
use super::profile;
use super::replay;
use super::rows::{self, count, nanos};
use super::setting;
use super::source;
use crate::{Application, Change, Changed, Endpoint, Fence, IdempotencyKey};
use aldaba_delivery::{AppId, EndpointId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

pub(super) fn apply(connection: &Connection, rules: Rules, change: &Change) -> rusqlite::Result<Changed> {
    let changed = make(connection, rules, change)?;
    if changed.is_change() {
        notice::keep(connection, change.notices())?;
    }
    Ok(changed)
}

fn make(connection: &Connection, rules: Rules, change: &Change) -> rusqlite::Result<Changed> {
    match change {
        Change::CreateApplication { application, idempotency } => {
            let owner = application.org.as_bytes();
            once(connection, owner, idempotency.as_ref(), || {
                create_application(connection, application)
                    .map(|changed| (changed, *application.id.as_bytes()))
            })
        }
        Change::UpdateApplication { application, was } => update_application(connection, application, *was),
        Change::DeleteApplication { app, at } => match source::of_application(connection, *app)? {
            Some(_) => Ok(Changed::InUse { endpoint: None }),
            None => delete_application(connection, *app, *at),
        },
        Change::CreateEndpoint { endpoint, idempotency, .. } => {
            let owner = endpoint.app.as_bytes();
            once(connection, owner, idempotency.as_ref(), || {
                create_endpoint(connection, rules, endpoint).map(|changed| (changed, *endpoint.id.as_bytes()))
            })
        }
        Change::UpdateEndpoint { endpoint, was, resume, .. } => {
            update_endpoint(connection, endpoint, was, *resume)
        }
        Change::ResumeEndpoint { app, endpoint, at, recovery, .. } => {
            let idempotency = recovery.as_ref().and_then(|recovery| recovery.idempotency.as_ref());
            let replay = recovery.as_ref().map(|recovery| &recovery.replay);
            once(connection, app.as_bytes(), idempotency, || {
                let resource = replay.map_or(*endpoint.as_bytes(), |replay| *replay.id.as_bytes());
                health::resume(connection, *app, *endpoint, *at, replay).map(|changed| (changed, resource))
            })
        }
        Change::ReleaseGates { gates } => health::release_gates(connection, gates),
        Change::DeleteEndpoint { app, endpoint, at, .. } => delete_endpoint(connection, *app, *endpoint, *at),
        Change::ReplaceSecrets { app, endpoint, was, sealed, at, idempotency, .. } => {
            once(connection, app.as_bytes(), idempotency.as_ref(), || {
                replace_secrets(connection, *app, *endpoint, (was, sealed), *at)
                    .map(|changed| (changed, *endpoint.as_bytes()))
            })
        }
        Change::StartReplay { replay, idempotency } => {
            let owner = replay.app.as_bytes();
            once(connection, owner, idempotency.as_ref(), || {
                replay::create(connection, replay).map(|changed| (changed, *replay.id.as_bytes()))
            })
        }
        Change::CancelReplay { org, replay, at } => replay::cancel(connection, *org, *replay, *at),
        Change::ForgetNotices { org, notices } => notice::forget(connection, *org, notices),
        Change::ExpungeMessage { app, message } => expunge::message(connection, *app, *message),
        Change::ExpungeAttempt { message, attempt, .. } => expunge::attempt(connection, *message, *attempt),
        Change::CreatePolicy { policy } => policy::create(connection, policy),
        Change::ReplacePolicy { policy } => policy::replace(connection, policy),
        Change::DeletePolicy { org, name } => policy::delete(connection, *org, name),
        Change::CreateProfile { profile } => profile::create(connection, profile),
        Change::ReplaceProfile { profile } => profile::replace(connection, profile),
        Change::DeleteProfile { org, name } => profile::delete(connection, *org, name),
        Change::CreateApiKey { key, idempotency } => {
            once(connection, key.org.as_bytes(), idempotency.as_ref(), || {
                credentials::create(connection, key).map(|changed| (changed, *key.id.as_bytes()))
            })
        }
        Change::RenameApiKey { org, id, name } => credentials::rename(connection, *org, *id, name),
        Change::RevokeApiKey { org, id } => credentials::revoke(connection, *org, *id),
        Change::NoteKeyUses { uses } => credentials::note_uses(connection, uses),
        Change::PutSetting { name, value } => setting::put(connection, name, value),
        Change::Reschedule { deliveries } => due_times::reschedule(connection, deliveries),
        Change::TakePlaces { now, limit } => places::take(connection, *now, *limit),
        Change::GrantPortalAccess { app } => credentials::grant_portal_access(connection, *app),
        Change::EndPortalTokens { app, cuts, at } => {
            credentials::end_portal_tokens(connection, *app, cuts, *at)
        }
        Change::RevokeToken { token } => credentials::revoke_token(connection, token),
        Change::WriteEventTypes(change) => {
            let owner = change.org.as_bytes();
            once(connection, owner, change.idempotency.as_ref(), || {
                event_type::write(connection, change).map(|changed| (changed, *change.resource.as_bytes()))
            })
        }
        Change::CreateSource { source, application, idempotency } => {
            once(connection, source.org.as_bytes(), idempotency.as_ref(), || {
                source::create(connection, source, application)
                    .map(|changed| (changed, *source.id.as_bytes()))
            })
        }
        Change::UpdateSource { source, was } => source::replace(connection, source, *was),
        Change::RotateSourceToken { source, was, idempotency } => {
            once(connection, source.org.as_bytes(), idempotency.as_ref(), || {
                source::replace(connection, source, *was).map(|changed| (changed, *source.id.as_bytes()))
            })
        }
        Change::DeleteSource { source, app, at } => {
            if !source::delete(connection, *source, *app)? {
                return Ok(Changed::NotFound);
            }
            delete_application(connection, *app, *at)
        }
    }
}

/// Runs `create` unless the key has been used; keeps the key if something was made.
fn once(
    connection: &Connection,
    owner: &[u8; 20],
    idempotency: Option<&IdempotencyKey>,
    create: impl FnOnce() -> rusqlite::Result<(Changed, [u8; 20])>,
) -> rusqlite::Result<Changed> {
    let Some(used) = idempotency else {
        return create().map(|(changed, _)| changed);
    };
    let mut keys = Keys::new(connection)?;
    if let Some(resource) = keys.find_request(owner, &used.digest)? {
        return Ok(Changed::Repeated { resource });
    }
    let (changed, resource) = create()?;
    if changed.made_something() {
        keys.keep_request(owner, used, &resource)?;
    }
    Ok(changed)
}

/// Whether another application of the organization has its uid.
pub(super) fn has_taken_uid(connection: &Connection, application: &Application) -> rusqlite::Result<bool> {
    let Some(uid) = &application.uid else { return Ok(false) };
    let mut taken = connection.prepare_cached("SELECT 1 FROM application WHERE org = ?1 AND uid = ?2")?;
    taken.exists((application.org.as_bytes(), uid))
}

pub(super) fn create_application(
    connection: &Connection,
    application: &Application,
) -> rusqlite::Result<Changed> {
    if has_taken_uid(connection, application)? {
        return Ok(Changed::UidTaken);
    }
    let mut insert = connection.prepare_cached(
        "INSERT INTO application (id, org, uid, name, throttle_rate, version, created_at, updated_at, metadata,
             alert_email)
         VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9) ON CONFLICT DO NOTHING",
    )?;
    let inserted = insert.execute((
        application.id.as_bytes(),
        application.org.as_bytes(),
        &application.uid,
        &application.name,
        application.throttle_rate,
        application.created_at.millis(),
        application.updated_at.millis(),
        &application.metadata,
        &application.alert_email,
    ))?;
    Ok(made(inserted, application.id.as_bytes()))
}

fn update_application(
    connection: &Connection,
    application: &Application,
    was: Timestamp,
) -> rusqlite::Result<Changed> {
    let (id, org) = (application.id.as_bytes(), application.org.as_bytes());
    let mut found = connection
        .prepare_cached("SELECT updated_at FROM application WHERE id = ?1 AND org = ?2 AND deleted = 0")?;
    match found.query_row((id, org), |row| row.get(0)).optional()? {
        None => return Ok(Changed::NotFound),
        Some(at) if Timestamp::from_millis(at) != was => return Ok(Changed::Stale),
        Some(_) => {}
    }
    if let Some(uid) = &application.uid {
        let mut taken = connection
            .prepare_cached("SELECT 1 FROM application WHERE org = ?1 AND uid = ?2 AND id != ?3")?;
        if taken.exists((org, uid, id))? {
            return Ok(Changed::UidTaken);
        }
    }
    let mut update = connection.prepare_cached(
        "UPDATE application SET uid = ?2, name = ?3, throttle_rate = ?4, updated_at = ?5, metadata = ?6, alert_email = ?7,
             version = version + 1
         WHERE id = ?1",
    )?;
    update.execute((
        id,
        &application.uid,
        &application.name,
        application.throttle_rate,
        application.updated_at.millis(),
        &application.metadata,
        &application.alert_email,
    ))?;
    Ok(Changed::Done { removed: Vec::new() })
}

/// Its mark is that of all its endpoints, too: there may be a million addresses among them.
fn delete_application(connection: &Connection, app: AppId, at: Timestamp) -> rusqlite::Result<Changed> {
    let mut delete = connection.prepare_cached(
        "UPDATE application SET deleted = 1, uid = NULL, version = version + 1, updated_at = ?2
         WHERE id = ?1 AND deleted = 0",
    )?;
    if delete.execute((app.as_bytes(), at.millis()))? == 0 {
        return Ok(Changed::NotFound);
    }
    credentials::revoke_of_application(connection, app)?;
    Ok(Changed::Done { removed: Vec::new() })
}

fn create_endpoint(connection: &Connection, rules: Rules, endpoint: &Endpoint) -> rusqlite::Result<Changed> {
    let app = endpoint.app.as_bytes();
    let mut found =
        connection.prepare_cached("SELECT 1 FROM application WHERE id = ?1 AND org = ?2 AND deleted = 0")?;
    if !found.exists((app, endpoint.org.as_bytes()))? {
        return Ok(Changed::NotFound);
    }
    if let Some(uid) = &endpoint.config.uid {
        let mut taken = connection.prepare_cached("SELECT 1 FROM endpoint WHERE app = ?1 AND uid = ?2")?;
        if taken.exists((app, uid))? {
            return Ok(Changed::UidTaken);
        }
    }
    if !policy::is_known(connection, endpoint.org, &endpoint.config.policy)? {
        return Ok(Changed::NoSuchPolicy);
    }
    if !profile::is_known(connection, endpoint.org, endpoint.config.profile.as_deref())? {
        return Ok(Changed::NoSuchProfile);
    }
    let mut counted = connection
        .prepare_cached("SELECT count(*) FROM endpoint WHERE app = ?1 AND deleted = 0 AND direct = 0")?;
    if counted.query_row((app,), |row| row.get::<_, i64>(0))? >= count(rules.endpoints_per_application) {
        return Ok(Changed::TooMany);
    }
    let inserted = insert_endpoint(connection, endpoint)?;
    raise_version(connection, endpoint.app)?;
    Ok(made(inserted, endpoint.id.as_bytes()))
}

pub(super) fn insert_endpoint(connection: &Connection, endpoint: &Endpoint) -> rusqlite::Result<usize> {
    let health = &endpoint.health;
    let mut insert = connection.prepare_cached(
        "INSERT INTO endpoint (id, app, org, uid, disabled, version, throttle_rate, created_at, updated_at,
             health_status, health_failure_count, health_failing_since, health_changed_at,
             health_next_probe_at, health_probe_gap, health_quiet_until, policy, profile, url, description,
             event_types, channels, metadata, sealed, http2, ordering, when_disabled, health_released_at,
             health_epoch, filter, direct, health_released_by_person)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
             ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32)
         ON CONFLICT DO NOTHING",
    )?;
    insert.execute(params![
        endpoint.id.as_bytes(),
        endpoint.app.as_bytes(),
        endpoint.org.as_bytes(),
        endpoint.config.uid,
        endpoint.config.disabled,
        endpoint.config.version,
        endpoint.config.throttle_rate,
        endpoint.created_at.millis(),
        endpoint.updated_at.millis(),
        health.status.code(),
        health.failure_count,
        health.failing_since.map(Timestamp::millis),
        health.changed_at.map(Timestamp::millis),
        health.next_probe_at.map(Timestamp::millis),
        nanos(health.probe_gap),
        health.quiet_until.map(Timestamp::millis),
        endpoint.config.policy,
        endpoint.config.profile,
        endpoint.config.url,
        endpoint.config.description,
        names::write(&endpoint.config.event_types),
        names::write(&endpoint.config.channels),
        endpoint.config.metadata,
        endpoint.sealed,
        endpoint.config.http2,
        endpoint.config.ordering.code(),
        endpoint.config.when_disabled.code(),
        health.released_at.map(Timestamp::millis),
        health.epoch,
        endpoint.config.filter.as_ref().map(|filter| filter.as_str()),
        endpoint.direct,
        health.released_by_person,
    ])
}

fn update_endpoint(
    connection: &Connection,
    endpoint: &Endpoint,
    was: &Fence,
    resume: bool,
) -> rusqlite::Result<Changed> {
    let (id, app) = (endpoint.id.as_bytes(), endpoint.app.as_bytes());
    let mut found = connection.prepare_cached(&format!(
        "SELECT {} FROM endpoint WHERE id = ?1 AND app = ?2 AND deleted = 0 AND direct = 0",
        rows::ENDPOINT
    ))?;
    let before = match found.query_row((id, app), rows::endpoint).optional()? {
        None => return Ok(Changed::NotFound),
        Some(before) if before.deleted => return Ok(Changed::NotFound),
        Some(before) if Fence::from(&before) != *was => return Ok(Changed::Stale),
        Some(before) => before,
    };
    if let Some(uid) = &endpoint.config.uid {
        let mut taken =
            connection.prepare_cached("SELECT 1 FROM endpoint WHERE app = ?1 AND uid = ?2 AND id != ?3")?;
        if taken.exists((app, uid, id))? {
            return Ok(Changed::UidTaken);
        }
    }
    if !policy::is_known(connection, endpoint.org, &endpoint.config.policy)? {
        return Ok(Changed::NoSuchPolicy);
    }
    if !profile::is_known(connection, endpoint.org, endpoint.config.profile.as_deref())? {
        return Ok(Changed::NoSuchProfile);
    }
    if let Some(obstacle) = ordering::change(connection, endpoint)? {
        return Ok(Changed::NotOrderable(obstacle));
    }
    let mut update = connection.prepare_cached(
        "UPDATE endpoint SET uid = ?2, disabled = ?3, version = ?4, throttle_rate = ?5, updated_at = ?6,
             policy = ?7, profile = ?8, url = ?9, description = ?10, event_types = ?11, channels = ?12,
             metadata = ?13, sealed = ?14, http2 = ?15, ordering = ?16, when_disabled = ?17,
             filter = ?18
         WHERE id = ?1",
    )?;
    update.execute(params![
        id,
        endpoint.config.uid,
        endpoint.config.disabled,
        endpoint.config.version,
        endpoint.config.throttle_rate,
        endpoint.updated_at.millis(),
        endpoint.config.policy,
        endpoint.config.profile,
        endpoint.config.url,
        endpoint.config.description,
        names::write(&endpoint.config.event_types),
        names::write(&endpoint.config.channels),
        endpoint.config.metadata,
        endpoint.sealed,
        endpoint.config.http2,
        endpoint.config.ordering.code(),
        endpoint.config.when_disabled.code(),
        endpoint.config.filter.as_ref().map(|filter| filter.as_str()),
    ])?;
    if let Some((health, cause)) = endpoint.switched(&before, resume) {
        health::by_hand(connection, &before, endpoint.config.disabled, &health, cause, endpoint.updated_at)?;
    }
    raise_version(connection, endpoint.app)?;
    Ok(Changed::Done { removed: Vec::new() })
}

fn delete_endpoint(
    connection: &Connection,
    app: AppId,
    endpoint: EndpointId,
    at: Timestamp,
) -> rusqlite::Result<Changed> {
    let mut delete = connection.prepare_cached(&format!(
        "UPDATE endpoint SET deleted = 1, uid = NULL, updated_at = ?3
         WHERE id = ?1 AND app = ?2 AND direct = 0 AND {}",
        rows::THERE
    ))?;
    if delete.execute((endpoint.as_bytes(), app.as_bytes(), at.millis()))? == 0 {
        return Ok(Changed::NotFound);
    }
    raise_version(connection, app)?;
    Ok(Changed::Done { removed: vec![endpoint] })
}

fn replace_secrets(
    connection: &Connection,
    app: AppId,
    endpoint: EndpointId,
    (was, sealed): (&[u8], &[u8]),
    at: Timestamp,
) -> rusqlite::Result<Changed> {
    let mut replace = connection.prepare_cached(&format!(
        "UPDATE endpoint SET sealed = ?4, updated_at = ?5
         WHERE id = ?1 AND app = ?2 AND direct = 0 AND sealed = ?3 AND {}",
        rows::THERE
    ))?;
    if replace.execute((endpoint.as_bytes(), app.as_bytes(), was, sealed, at.millis()))? == 0 {
        let mut there = connection.prepare_cached(&format!(
            "SELECT 1 FROM endpoint WHERE id = ?1 AND app = ?2 AND direct = 0 AND {}",
            rows::THERE
        ))?;
        let there = there.exists((endpoint.as_bytes(), app.as_bytes()))?;
        return Ok(if there { Changed::Stale } else { Changed::NotFound });
    }
    raise_version(connection, app)?;
    Ok(Changed::Done { removed: Vec::new() })
}

fn raise_version(connection: &Connection, app: AppId) -> rusqlite::Result<()> {
    let mut raise =
        connection.prepare_cached("UPDATE application SET version = version + 1 WHERE id = ?1")?;
    raise.execute((app.as_bytes(),))?;
    Ok(())
}

/// Nothing inserted: the very same one was handed in twice.
fn made(inserted: usize, id: &[u8; 20]) -> Changed {
    match inserted {
        0 => Changed::Repeated { resource: *id },
        _ => Changed::Done { removed: Vec::new() },
    }
}
