//! Sources of inbound webhooks, and their events.

use crate::operations::column::{Columns, FromRow, count, from_row};
use crate::operations::delivery::{self, view};
use crate::operations::stored::{ColumnName, Stored, assignments, columns, insert, parameters, stored};
use crate::operations::transaction::{ReadingExt, Value, statements, values};
use crate::operations::{
    Counters, Numbers, Reading, Result, Transaction, application, endpoint, lists, message, replay,
};
use crate::{
    Application, Changed, DeliveryRound, DeliveryStatus, DeliveryView, Order, Page, PendingDelivery,
    ReopenEvent, ResourceKey, Source, SourceConfig, SourceEvent, SourceToken,
};
use aldaba_delivery::{AppId, EndpointId, MessageId, OrgId, SourceId, Timestamp};

stored! { SourceConfig { uid, name, metadata, kind, settings } }

stored! { Source {
    id, org, app, config: [SourceConfig], sealed, tokens: [Vec<SourceToken>], created_at, updated_at,
} }

/// Tokens are rows of their own.
impl FromRow for Vec<SourceToken> {
    fn from_row(_: &mut Columns<'_>) -> Result<Self> {
        Ok(Self::new())
    }
}

impl Stored for Vec<SourceToken> {
    fn columns(_: &mut Vec<ColumnName>) {}
    fn values<'a>(&'a self, _: &mut Vec<Value<'a>>) {}
}

from_row!(SourceToken { digest, expires_at });

statements! {
    INSERT = insert::<Source>("source");
    UPDATE = format!("UPDATE source SET {} WHERE id = ?1", assignments::<Source>());
    DELETE = "DELETE FROM source WHERE id = ?1 AND app = ?2";
    UID_TAKEN = "SELECT 1 FROM source WHERE org = ?1 AND uid = ?2 AND id <> ?3";
    COUNT = "SELECT count(*) FROM source WHERE org = ?1";
    UPDATED_AT = "SELECT updated_at FROM source WHERE id = ?1 AND org = ?2";
    BY_ID = format!("SELECT {} FROM source WHERE id = ?1", columns::<Source>());
    BY_UID = format!("SELECT {} FROM source WHERE org = ?1 AND uid = ?2", columns::<Source>());
    BY_TOKEN = format!(
        "SELECT {} FROM source WHERE id = (SELECT source FROM source_token WHERE digest = ?1)",
        columns::<Source>()
    );
    OF_APPLICATION = "SELECT id FROM source WHERE app = ?1";
    PAGE[order] = format!(
        "SELECT {} FROM source WHERE org = ?1 AND id > ?2 AND id < ?3 ORDER BY id {} LIMIT ?4",
        columns::<Source>(), order.word
    );
    TOKENS = "SELECT digest, expires_at FROM source_token WHERE source = ?1 ORDER BY number DESC";
    INSERT_TOKEN = "INSERT INTO source_token (digest, source, number, expires_at) VALUES (?1, ?2, ?3, ?4)";
    REMOVE_TOKENS = "DELETE FROM source_token WHERE source = ?1";
}

pub(crate) fn create(tx: &dyn Transaction, source: &Source, application: &Application) -> Result<Changed> {
    if has_taken_uid(tx, source)? {
        return Ok(Changed::UidTaken);
    }
    if tx.number(&COUNT, values![source.org])? >= count(Source::MAX_PER_ORGANIZATION) {
        return Ok(Changed::TooMany);
    }
    match application::create(tx, application)? {
        Changed::Done { .. } => {}
        other => return Ok(other),
    }
    tx.execute(&INSERT, &parameters(source))?;
    write_tokens(tx, source)?;
    Ok(Changed::done())
}

pub(crate) fn replace(tx: &dyn Transaction, source: &Source, was: Timestamp) -> Result<Changed> {
    match tx.one::<Timestamp>(&UPDATED_AT, values![source.id, source.org])? {
        None => return Ok(Changed::NotFound),
        Some(at) if at != was => return Ok(Changed::Stale),
        Some(_) if has_taken_uid(tx, source)? => return Ok(Changed::UidTaken),
        Some(_) => {}
    }
    tx.execute(&UPDATE, &parameters(source))?;
    write_tokens(tx, source)?;
    Ok(Changed::done())
}

/// Deletes a source with the application that it owns.
pub(crate) fn delete(tx: &dyn Transaction, source: SourceId, app: AppId, at: Timestamp) -> Result<Changed> {
    if tx.execute(&DELETE, values![source, app])? == 0 {
        return Ok(Changed::NotFound);
    }
    tx.execute(&REMOVE_TOKENS, values![source])?;
    application::delete(tx, app, at)
}

fn has_taken_uid(reading: &dyn Reading, source: &Source) -> Result<bool> {
    let Some(uid) = &source.config.uid else { return Ok(false) };
    reading.exists(&UID_TAKEN, values![source.org, uid, source.id])
}

/// There are a few of them at most.
fn write_tokens(tx: &dyn Transaction, source: &Source) -> Result<()> {
    tx.execute(&REMOVE_TOKENS, values![source.id])?;
    for (number, SourceToken { digest, expires_at }) in (0_i64..).zip(source.tokens.iter().rev()) {
        tx.execute(&INSERT_TOKEN, values![digest, source.id, number, expires_at])?;
    }
    Ok(())
}

fn with_tokens(reading: &dyn Reading, source: Source) -> Result<Source> {
    Ok(Source { tokens: reading.all(&TOKENS, values![source.id])?, ..source })
}

/// By id first: a uid that looks like the id of another source must not hide it.
pub(crate) fn find(reading: &dyn Reading, org: OrgId, key: &ResourceKey) -> Result<Option<Source>> {
    let found = match key.parse() {
        Ok(id) => by_id(reading, id)?.filter(|source| source.org == org),
        Err(_) => None,
    };
    let found = match found {
        Some(found) => Some(found),
        None => reading.one(&BY_UID, values![org, key])?,
    };
    found.map(|source| with_tokens(reading, source)).transpose()
}

/// Without its tokens.
pub(crate) fn by_id(reading: &dyn Reading, id: SourceId) -> Result<Option<Source>> {
    reading.one(&BY_ID, values![id])
}

pub(crate) fn of_token(reading: &dyn Reading, digest: &[u8; 32]) -> Result<Option<Source>> {
    let found = reading.one(&BY_TOKEN, values![digest])?;
    found.map(|source| with_tokens(reading, source)).transpose()
}

pub(crate) fn of_application(reading: &dyn Reading, app: AppId) -> Result<Option<SourceId>> {
    reading.one(&OF_APPLICATION, values![app])
}

pub(crate) fn list(
    reading: &dyn Reading,
    org: OrgId,
    page: Page<SourceId>,
    order: Order,
) -> Result<Vec<Source>> {
    let (low, high) = lists::bounds(page.after, order);
    let found: Vec<Source> = reading.all(PAGE.by(order), values![org, low, high, page.limit])?;
    found.into_iter().map(|source| with_tokens(reading, source)).collect()
}

pub(crate) fn event(reading: &dyn Reading, app: AppId, key: &ResourceKey) -> Result<Option<SourceEvent>> {
    let Some(message) = message::find_bare(reading, app, key)? else { return Ok(None) };
    let rounds = delivery::of_message(reading, message.id)?;
    let rounds = SourceEvent::newest(rounds, |endpoint| endpoint::is_there(reading, endpoint))?;
    let (deliveries, deleted) = views(reading, app, rounds)?;
    Ok(Some(SourceEvent { message, deliveries, deleted }))
}

/// What is shown of the rounds of an event, and which of their endpoints were deleted before they had it.
pub(crate) fn views(
    reading: &dyn Reading,
    app: AppId,
    rounds: Vec<DeliveryStatus>,
) -> Result<(Vec<DeliveryView>, Vec<EndpointId>)> {
    let (mut views, mut deleted) = (Vec::with_capacity(rounds.len()), Vec::new());
    for round in rounds {
        if round.is_dead() && !endpoint::is_there(reading, round.endpoint)? {
            deleted.push(round.endpoint);
        }
        views.push(view(reading, app, round)?);
    }
    Ok((views, deleted))
}

pub(crate) fn rounds(reading: &dyn Reading, message: MessageId) -> Result<Vec<DeliveryRound>> {
    let mut rounds = Vec::new();
    for status in delivery::of_message(reading, message)? {
        let is_there = endpoint::is_there(reading, status.endpoint)?;
        let in_dead_letter = delivery::is_in_dead_letter(reading, status.seq)?;
        rounds.push(DeliveryRound { status, is_there, in_dead_letter });
    }
    Ok(rounds)
}

/// Opens new rounds of an event that has failed.
pub(crate) fn reopen(
    tx: &dyn Transaction,
    numbers: &mut Numbers,
    counters: &mut Counters,
    reopen: &ReopenEvent,
) -> Result<Vec<(EndpointId, PendingDelivery)>> {
    // Without its payload there is nothing to send.
    if !message::has_content(tx, reopen.app, reopen.message)? {
        return Ok(Vec::new());
    }
    let rounds = rounds(tx, reopen.message)?;
    let mut there = Vec::with_capacity(reopen.wanting.len());
    for endpoint in &reopen.wanting {
        if endpoint::is_there(tx, *endpoint)? {
            there.push(*endpoint);
        }
    }
    let mut opened = Vec::new();
    for (endpoint, settled) in reopen.targets(&rounds, |endpoint| there.contains(&endpoint)) {
        let when = (reopen.now, reopen.now);
        let waiting = replay::open_round(tx, numbers, (endpoint, reopen.message), settled, when)?;
        opened.push((endpoint, waiting));
    }
    counters.opened(reopen.org, reopen.now, opened.len());
    Ok(opened)
}
