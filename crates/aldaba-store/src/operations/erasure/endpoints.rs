//! Removes endpoints and addresses, deleted ones too, with what is kept of each.

use super::step::{Eraser, PartEnd, ROWS_AT_ONCE};
use crate::Hour;
use crate::operations::transaction::{ReadingExt, statements, values};
use crate::operations::{Result, gate, health, mail, statistics};
use aldaba_delivery::{EndpointId, Origin};
use url::Url;

statements! {
    FIRST = "SELECT id, url, owner_email FROM endpoint WHERE app = ?1 ORDER BY id LIMIT 1";
    MINUTES = "SELECT minute FROM endpoint_minute WHERE endpoint = ?1 ORDER BY minute LIMIT ?2";
    HOURS = "SELECT hour FROM endpoint_hour WHERE endpoint = ?1 ORDER BY hour LIMIT ?2";
    /// Another endpoint of the organization at the same host.
    SHARED_HOST = "SELECT 1 FROM endpoint WHERE url >= ?1 AND url < ?2 AND org = ?3 AND app <> ?4 AND deleted = 0 LIMIT 1";
    REMOVE = "DELETE FROM endpoint WHERE id = ?1";
}

pub(super) fn erase(eraser: &mut Eraser<'_>) -> Result<PartEnd> {
    eraser.all_of(|eraser| {
        let found: Option<(EndpointId, String, Option<String>)> =
            eraser.tx.one(&FIRST, values![eraser.erasure.app])?;
        let Some((endpoint, url, owner)) = found else { return Ok(0) };
        one(eraser, endpoint, &url, owner)
    })
}

/// Its counters may need more than one slice; it goes with the last of them.
fn one(eraser: &mut Eraser<'_>, endpoint: EndpointId, url: &str, owner: Option<String>) -> Result<usize> {
    for remove in [minutes, hours] {
        if eraser.all_of(|eraser| remove(eraser, endpoint))? == PartEnd::SliceOver {
            return Ok(1);
        }
    }
    eraser.counters.forget_endpoint(endpoint);
    let (tx, org, app) = (eraser.tx, eraser.erasure.org, eraser.erasure.app);
    health::forget_changes(tx, endpoint)?;
    mail::forget_endpoint(tx, endpoint)?;
    if let Some(address) = owner {
        mail::forget_counts(tx, org, app, &address)?;
    }
    forget_host(eraser, url)?;
    eraser.erasure.removed.endpoints += eraser.tx.execute(&REMOVE, values![endpoint])? as u64;
    Ok(1)
}

fn minutes(eraser: &mut Eraser<'_>, endpoint: EndpointId) -> Result<usize> {
    let found: Vec<i64> = eraser.tx.all(&MINUTES, values![endpoint, ROWS_AT_ONCE])?;
    for minute in &found {
        eraser.erasure.removed.others += statistics::remove_minute(eraser.tx, endpoint, *minute)? as u64;
    }
    Ok(found.len())
}

fn hours(eraser: &mut Eraser<'_>, endpoint: EndpointId) -> Result<usize> {
    let found: Vec<Hour> = eraser.tx.all(&HOURS, values![endpoint, ROWS_AT_ONCE])?;
    for hour in &found {
        eraser.erasure.removed.others += statistics::remove_hour(eraser.tx, endpoint, *hour)? as u64;
    }
    Ok(found.len())
}

/// A hold names a host. It goes with the last endpoint of the organization there; others may still need it.
fn forget_host(eraser: &Eraser<'_>, url: &str) -> Result<()> {
    let Ok(url) = Url::parse(url) else { return Ok(()) };
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return Ok(()) };
    let begin = format!("{}://{host}", url.scheme());
    let (end, org) = (format!("{begin}\u{10ffff}"), eraser.erasure.org);
    if eraser.tx.exists(&SHARED_HOST, values![begin, end, org, eraser.erasure.app])? {
        return Ok(());
    }
    gate::remove_of_host(eraser.tx, org, &Origin::new(url.scheme(), host, port))
}
