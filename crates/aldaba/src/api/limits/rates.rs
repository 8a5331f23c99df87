//! Limits the requests per second of an organization, and of each of its applications.

use crate::api::response::code::Code;
use crate::api::{Api, Error};
use crate::config::RequestRates;
use crate::token::Caller;
use aldaba_delivery::{AppId, OrgId, SourceId};
use aldaba_store::ApplicationRef;
use http::{Method, Uri};
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;

/// Locks, so that requests of different callers do not wait for each other.
const SHARDS: usize = 16;
/// Owners that one shard remembers. Beyond, owners without recent requests are forgotten; if all have some, all are
/// forgotten, and begin with a full burst.
const MAX_OWNERS_PER_SHARD: usize = 8192;
/// Parts of a request. A read counts as one part.
const PARTS_PER_REQUEST: u64 = 4;

/// Callers whose requests count together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateOwner {
    Organization(OrgId),
    Application(OrgId, AppId),
    /// The source's sender.
    Source(SourceId),
    /// Senders to the source that are not verified.
    Strangers(SourceId),
}

impl RateOwner {
    fn bytes(&self) -> &[u8; 20] {
        match self {
            Self::Organization(org) => org.as_bytes(),
            Self::Application(_, app) => app.as_bytes(),
            Self::Source(source) | Self::Strangers(source) => source.as_bytes(),
        }
    }
}

/// Every request computes it, so it hashes no more than it needs.
impl Hash for RateOwner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write(self.bytes());
    }
}

#[derive(Debug)]
pub(crate) struct Rates {
    organization: Option<Rate>,
    application: Option<Rate>,
    source: Option<Rate>,
    /// When each owner will have earned the tokens it has used, in nanoseconds. An owner whose moment is over need
    /// not be remembered.
    shards: [Mutex<HashMap<RateOwner, u64>>; SHARDS],
}

/// A token bucket, counted in the time that a token takes.
#[derive(Clone, Copy, Debug)]
struct Rate {
    a_second: u32,
    /// Nanoseconds per part of a request.
    part: u64,
    /// Nanoseconds of unused time that may be saved.
    burst: u64,
}

impl Rate {
    /// `None`: any number.
    fn new(a_second: u32, burst: Duration) -> Option<Self> {
        let part = 1_000_000_000_u64.checked_div(u64::from(a_second) * PARTS_PER_REQUEST)?;
        let burst = u64::try_from(burst.as_nanos()).unwrap_or(u64::MAX / 4);
        Some(Self { a_second, part, burst: burst.max(part * PARTS_PER_REQUEST) })
    }
}

impl Rates {
    pub(crate) fn new(rates: &RequestRates) -> Self {
        Self {
            organization: Rate::new(rates.organization, rates.burst),
            application: Rate::new(rates.application, rates.burst),
            source: Rate::new(rates.source, rates.burst),
            shards: std::array::from_fn(|_| Mutex::default()),
        }
    }

    fn of(&self, owner: &RateOwner) -> Option<Rate> {
        match owner {
            RateOwner::Organization(_) => self.organization,
            RateOwner::Application(..) => self.application,
            RateOwner::Source(_) | RateOwner::Strangers(_) => self.source,
        }
    }

    fn shard(&self, owner: &RateOwner) -> &Mutex<HashMap<RateOwner, u64>> {
        let bytes = owner.bytes();
        // The last byte of an id is random.
        &self.shards[usize::from(bytes[bytes.len() - 1]) % SHARDS]
    }

    /// Takes tokens for this many parts of a request, or says how long to wait.
    fn take(&self, owner: RateOwner, parts: u64, now: Duration) -> Result<(), Duration> {
        let Some(rate) = self.of(&owner) else { return Ok(()) };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX / 2);
        let mut owners = self.shard(&owner).lock();
        if owners.len() >= MAX_OWNERS_PER_SHARD && !owners.contains_key(&owner) {
            owners.retain(|_, earned_at| *earned_at > now);
            if owners.len() >= MAX_OWNERS_PER_SHARD {
                owners.clear();
            }
        }
        let earned_at = owners.entry(owner).or_insert(now);
        let after = now.max(*earned_at).saturating_add(rate.part.saturating_mul(parts));
        let over = after.saturating_sub(now.saturating_add(rate.burst));
        if over > 0 {
            return Err(Duration::from_nanos(over));
        }
        *earned_at = after;
        Ok(())
    }

    /// Counts further requests, with or without tokens for them: later requests wait for the debt.
    fn charge(&self, owner: RateOwner, requests: u64, now: Duration) {
        let Some(rate) = self.of(&owner) else { return };
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX / 2);
        let mut owners = self.shard(&owner).lock();
        let earned_at = owners.entry(owner).or_insert(now);
        let cost = rate.part.saturating_mul(PARTS_PER_REQUEST).saturating_mul(requests);
        *earned_at = now.max(*earned_at).saturating_add(cost);
    }
}

/// Admits a request, unless its organization or its application has exceeded its rate. A refused application uses up
/// nothing of its organization's rate.
pub(crate) async fn admit(
    api: &Api,
    caller: &Caller,
    method: &Method,
    app: Option<&Uri>,
) -> Result<(), Error> {
    let rates = &api.rates;
    if rates.organization.is_none() && rates.application.is_none() {
        return Ok(());
    }
    let parts = if matches!(*method, Method::GET | Method::HEAD) { 1 } else { PARTS_PER_REQUEST };
    let now = api.engine.clock().monotonic();
    let organization = RateOwner::Organization(caller.org());
    let application = match app.filter(|_| rates.application.is_some()) {
        Some(uri) => application(api, caller, uri).await?,
        None => None,
    };
    for owner in application.into_iter().chain([organization]) {
        rates.take(owner, parts, now).map_err(|wait| refusal(rates, &owner, wait))?;
    }
    Ok(())
}

/// Counts the content of one request beyond the first: a batch costs as much as its messages.
pub(crate) fn charge(api: &Api, org: OrgId, app: AppId, more: usize) {
    let (now, more) = (api.engine.clock().monotonic(), u64::try_from(more).unwrap_or(u64::MAX));
    for owner in [RateOwner::Organization(org), RateOwner::Application(org, app)] {
        api.rates.charge(owner, more, now);
    }
}

/// The application in a path, by id or uid; the handler says whether it exists. A caller for one application uses up
/// its own rate, whatever the path says: it must neither harm nor discover others.
async fn application(api: &Api, caller: &Caller, uri: &Uri) -> Result<Option<RateOwner>, Error> {
    let key = uri.path().strip_prefix("/app/").and_then(|rest| rest.split('/').next());
    let Some(key) = key else { return Ok(None) };
    let org = caller.org();
    if let Some(only) = caller.app() {
        return Ok(Some(RateOwner::Application(org, only)));
    }
    if let Ok(app) = key.parse::<AppId>() {
        return Ok(Some(RateOwner::Application(org, app)));
    }
    let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
    let found = api.engine.application_id(&ApplicationRef { org, key }).await?;
    Ok(found.map(|app| RateOwner::Application(org, app)))
}

/// Admits a request of a source's sender, unless the source has exceeded its rate. It counts for nothing else:
/// senders must not use up the organization's rate.
pub(crate) fn admit_sender(api: &Api, source: SourceId) -> Result<(), Error> {
    take_for_source(api, RateOwner::Source(source))
}

/// Admits a request whose sender is not verified. It uses up nothing of the sender's rate.
pub(crate) fn admit_stranger(api: &Api, source: SourceId) -> Result<(), Error> {
    take_for_source(api, RateOwner::Strangers(source))
}

fn take_for_source(api: &Api, owner: RateOwner) -> Result<(), Error> {
    let now = api.engine.clock().monotonic();
    api.rates.take(owner, PARTS_PER_REQUEST, now).map_err(|wait| refusal(&api.rates, &owner, wait))
}

fn refusal(rates: &Rates, owner: &RateOwner, wait: Duration) -> Error {
    let whose = match owner {
        RateOwner::Organization(_) => "organization",
        RateOwner::Application(..) => "application",
        RateOwner::Source(_) | RateOwner::Strangers(_) => "source",
    };
    let a_second = rates.of(owner).map_or(0, |rate| rate.a_second);
    let seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX).max(1);
    let detail = format!(
        "The {whose} may make {a_second} requests a second, of which reads count a quarter, and has made them. \
         Nothing was done; try again in {seconds} s"
    );
    Error::too_many(Code::RateLimited, detail, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORG: RateOwner = RateOwner::Organization(OrgId::from_bytes([1; 20]));

    fn rates(organization: u32, application: u32, burst: u64) -> Rates {
        Rates::new(&RequestRates { organization, application, source: 0, burst: Duration::from_secs(burst) })
    }

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// The number of requests that are admitted between two moments, at 50 per millisecond.
    fn let_in(rates: &Rates, owner: RateOwner, parts: u64, (from, to): (u64, u64)) -> usize {
        (from..to).flat_map(|at| [at; 50]).filter(|at| rates.take(owner, parts, millis(*at)).is_ok()).count()
    }

    #[test]
    fn the_rate_holds_and_what_is_saved_up_is_a_burst() {
        let rates = rates(100, 0, 2);
        assert_eq!(let_in(&rates, ORG, 4, (0, 1)), 50, "all that come");
        assert_eq!(let_in(&rates, ORG, 4, (1, 10)), 150, "the rest of two seconds' worth");
        assert_eq!(let_in(&rates, ORG, 4, (10, 1000)), 99);
        assert_eq!(let_in(&rates, ORG, 4, (1000, 11_000)), 1000);
        assert_eq!(let_in(&rates, ORG, 4, (60_000, 60_010)), 200, "no more is saved up than the burst");
    }

    #[test]
    fn a_read_is_a_quarter_and_others_are_not_concerned() {
        let rates = rates(10, 0, 1);
        assert_eq!(let_in(&rates, ORG, 1, (0, 1)), 40);
        let other = RateOwner::Organization(OrgId::from_bytes([2; 20]));
        assert_eq!(let_in(&rates, other, 4, (0, 1)), 10);
        let application = RateOwner::Application(OrgId::from_bytes([1; 20]), AppId::from_bytes([1; 20]));
        assert_eq!(let_in(&rates, application, 4, (0, 1)), 50, "without a rate");
    }

    #[test]
    fn a_refusal_says_when_it_is_worth_trying_again() {
        let rates = rates(2, 0, 1);
        rates.take(ORG, 4, millis(0)).unwrap();
        rates.take(ORG, 4, millis(0)).unwrap();
        let wait = rates.take(ORG, 4, millis(100)).unwrap_err();
        assert_eq!(wait, millis(400));
        rates.take(ORG, 4, millis(499)).unwrap_err();
        rates.take(ORG, 4, millis(500)).unwrap();
    }

    #[test]
    fn what_is_charged_is_made_up_for_by_waiting() {
        let rates = rates(10, 0, 1);
        rates.take(ORG, 4, millis(0)).unwrap();
        rates.charge(ORG, 99, millis(0));
        assert_eq!(rates.take(ORG, 4, millis(0)), Err(millis(9100)));
        assert_eq!(let_in(&rates, ORG, 4, (9000, 9300)), 2);
    }

    #[test]
    fn those_who_ask_for_nothing_are_forgotten_and_memory_has_an_end() {
        let rates = rates(0, 1000, 1);
        let owner = |number: u32| {
            let mut bytes = [0; 20];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            RateOwner::Application(OrgId::from_bytes([1; 20]), AppId::from_bytes(bytes))
        };
        let most = u32::try_from(MAX_OWNERS_PER_SHARD).unwrap();
        for number in 0..most {
            rates.take(owner(number), 4, millis(0)).unwrap();
        }
        let remembered = || rates.shards[0].lock().len();
        assert_eq!(remembered(), MAX_OWNERS_PER_SHARD);
        rates.take(owner(most), 4, millis(1000)).unwrap();
        assert_eq!(remembered(), 1, "all others have earned what they had used");
        for number in 0..=2 * most {
            rates.take(owner(number), 4, millis(2000)).unwrap();
        }
        assert!(remembered() <= MAX_OWNERS_PER_SHARD);
    }

    /// `cargo test --release -p aldaba --lib -- --ignored --nocapture letting_in_takes` prints it.
    #[test]
    #[ignore = "prints a time; it means something only in a release build"]
    #[expect(clippy::disallowed_methods, reason = "this measures")]
    fn letting_in_takes_nanoseconds() {
        let rates = rates(1 << 30, 1 << 30, 1);
        let owner = |n: u8| RateOwner::Application(OrgId::from_bytes([1; 20]), AppId::from_bytes([n; 20]));
        let begun = std::time::Instant::now();
        for number in 0..1_000_000_u32 {
            let now = Duration::from_micros(u64::from(number));
            let _ = std::hint::black_box(rates.take(owner((number % 200) as u8), 4, now));
            let _ = std::hint::black_box(rates.take(ORG, 4, now));
        }
        println!("{} ns for an organization and an application", begun.elapsed().as_nanos() / 1_000_000);
    }
}
