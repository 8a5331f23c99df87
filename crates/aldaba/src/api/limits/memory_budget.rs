//! Limits the memory of request bodies and of large responses: one budget over all connections, a share of it for each
//! organization and for the callers of each application, and a reserve for small bodies of callers who hold little.

use crate::api::Error;
use crate::api::request::body;
use crate::api::response::code::Code;
use crate::config::Limits;
use crate::token::Caller;
use aldaba_delivery::{AppId, OrgId};
use http::StatusCode;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes up to which a body is small. A small body that came in one piece counts for no share, only for the whole:
/// nobody can hold it by being slow.
pub(crate) const SMALL_BODY_BYTES: usize = 64 * 1024;
/// A quarter of the whole is reserved for small bodies of callers who hold little, and half of that for small bodies
/// that came in one piece.
const RESERVED_PART: usize = 4;
/// A caller holds little up to this part of the whole.
const LITTLE_PART: usize = 32;
/// The parts of the whole that an organization may hold, and the callers of one application. A caller that holds
/// nothing may hold one body that is larger.
const ORGANIZATION_PART: usize = 2;
const APPLICATION_PART: usize = 4;
/// The parts that unverified senders to all sources of an organization may hold, and to one source. They count for
/// nothing else: anybody who knows the URL of a source could keep the organization from sending.
const ALL_SOURCES_PART: usize = 4;
const SOURCE_PART: usize = 8;

/// A limit in bytes, and how many are taken.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget(Arc<BudgetState>);

#[derive(Debug)]
struct BudgetState {
    of: BudgetUse,
    limit: usize,
    /// What all callers may fill.
    for_all: usize,
    /// What callers who hold little may fill.
    for_little: usize,
    taken: AtomicUsize,
    /// The bytes of each share, without small bodies that came in one piece.
    held: Mutex<HashMap<BudgetShare, usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BudgetUse {
    Bodies,
    Responses,
}

/// Callers whose memory counts together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BudgetShare {
    /// All callers of the organization.
    Organization(OrgId),
    /// Callers for the whole organization.
    Itself(OrgId),
    /// Callers for one application.
    Application(OrgId, AppId),
    /// Senders to all sources of the organization.
    AllSources(OrgId),
    /// Senders to the source that has this application.
    Source(OrgId, AppId),
}

/// Who holds memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    org: OrgId,
    /// The only application that the caller is for.
    app: Option<AppId>,
    at_source: bool,
}

impl From<&Caller> for Holder {
    fn from(caller: &Caller) -> Self {
        Self { org: caller.org(), app: caller.app(), at_source: false }
    }
}

impl Holder {
    /// A sender to the source of an application.
    pub(crate) fn at_source(org: OrgId, app: AppId) -> Self {
        Self { org, app: Some(app), at_source: true }
    }

    fn direct(self) -> BudgetShare {
        match self.app {
            None => BudgetShare::Itself(self.org),
            Some(app) if self.at_source => BudgetShare::Source(self.org, app),
            Some(app) => BudgetShare::Application(self.org, app),
        }
    }

    fn shares(self) -> [BudgetShare; 2] {
        let all = if self.at_source {
            BudgetShare::AllSources(self.org)
        } else {
            BudgetShare::Organization(self.org)
        };
        [self.direct(), all]
    }
}

/// The memory of one body or response, released on drop.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    of: MemoryBudget,
    holder: Option<Holder>,
    bytes: usize,
    /// The bytes that count for the holder's share.
    shared: usize,
}

impl MemoryBudget {
    pub(crate) fn for_requests(limits: &Limits) -> Self {
        Self::of_bodies(limits.body_bytes, body::largest(limits))
    }

    pub(crate) fn for_responses(limits: &Limits) -> Self {
        Self::of_responses(limits.answer_bytes)
    }

    /// The largest body of any route fits beside small ones.
    fn of_bodies(limit: usize, largest: usize) -> Self {
        Self::new(BudgetUse::Bodies, limit, (limit - limit / RESERVED_PART).max(largest).min(limit))
    }

    /// Small responses are not counted: a connection has one at a time.
    fn of_responses(limit: usize) -> Self {
        Self::new(BudgetUse::Responses, limit, limit)
    }

    fn new(of: BudgetUse, limit: usize, for_all: usize) -> Self {
        let for_little = limit - (limit - for_all) / 2;
        let (taken, held) = (AtomicUsize::new(0), Mutex::default());
        Self(Arc::new(BudgetState { of, limit, for_all, for_little, taken, held }))
    }

    /// Holds nothing yet.
    pub(crate) fn enter(&self, holder: Option<Holder>) -> HeldMemory {
        HeldMemory { of: self.clone(), holder, bytes: 0, shared: 0 }
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }
}

impl BudgetState {
    fn limit_of(&self, share: &BudgetShare) -> usize {
        match share {
            BudgetShare::Organization(_) | BudgetShare::Itself(_) => self.limit / ORGANIZATION_PART,
            BudgetShare::Application(..) => self.limit / APPLICATION_PART,
            BudgetShare::AllSources(_) => self.limit / ALL_SOURCES_PART,
            BudgetShare::Source(..) => self.limit / SOURCE_PART,
        }
    }
}

impl HeldMemory {
    /// For a body that has arrived in one piece.
    pub(crate) fn take_whole(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > SMALL_BODY_BYTES {
            return self.grow_to(bytes);
        }
        let limit = self.of.0.limit;
        self.take(bytes, limit)
    }

    /// Grows to this many bytes in all, or fails at once: bodies that waited for memory could wait for each other.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let state = self.of.0.clone();
        let mut held = state.held.lock();
        let more = bytes - self.shared;
        let held_by = |share: &BudgetShare| held.get(share).copied().unwrap_or(0);
        let with_it = |share: &BudgetShare| held_by(share).saturating_add(more);
        let direct = self.holder.map_or(0, |holder| with_it(&holder.direct()));
        if bytes <= SMALL_BODY_BYTES && direct <= state.limit / LITTLE_PART {
            self.take(bytes, state.for_little)?;
        } else {
            let is_over =
                |share: &BudgetShare| held_by(share) > self.shared && with_it(share) > state.limit_of(share);
            if let Some(share) = self.shares().find(is_over) {
                return Err(share_used_up(state.of, &share));
            }
            self.take(bytes, state.for_all)?;
        }
        self.hold(&mut held, more);
        Ok(())
    }

    /// Grows when it is too late to refuse: what follows finds less memory.
    pub(crate) fn grow_anyway(&mut self, bytes: usize) {
        let state = self.of.0.clone();
        let mut held = state.held.lock();
        state.taken.fetch_add(bytes.saturating_sub(self.bytes), Ordering::Relaxed);
        self.bytes = self.bytes.max(bytes);
        let more = self.bytes - self.shared;
        self.hold(&mut held, more);
    }

    fn shares(&self) -> impl Iterator<Item = BudgetShare> + use<> {
        self.holder.into_iter().flat_map(Holder::shares)
    }

    /// Takes up to a limit for all holders, or up to the whole if nobody else holds anything.
    fn take(&mut self, bytes: usize, most: usize) -> Result<(), Error> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        let BudgetState { of, limit, taken, .. } = &*self.of.0;
        let fits = |taken: usize| {
            let most = if taken == self.bytes { *limit } else { most };
            taken.checked_add(more).filter(|taken| *taken <= most)
        };
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| all_used_up(*of))?;
        self.bytes = bytes;
        Ok(())
    }

    fn hold(&mut self, held: &mut HashMap<BudgetShare, usize>, more: usize) {
        for share in self.shares() {
            *held.entry(share).or_default() += more;
        }
        self.shared += more;
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.of.0.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.shared == 0 {
            return;
        }
        let mut held = self.of.0.held.lock();
        for share in self.shares() {
            if let Some(there) = held.get_mut(&share) {
                *there -= self.shared;
                if *there == 0 {
                    held.remove(&share);
                }
            }
        }
    }
}

fn all_used_up(of: BudgetUse) -> Error {
    busy(match of {
        BudgetUse::Bodies => {
            "The server is reading as many requests as it has room for. Nothing was stored; try again"
        }
        BudgetUse::Responses => {
            "The server holds as many large answers as it has room for, until they are read. Try again, with a smaller \
             limit"
        }
    })
}

fn share_used_up(of: BudgetUse, share: &BudgetShare) -> Error {
    busy(match (of, share) {
        (BudgetUse::Bodies, BudgetShare::Organization(_) | BudgetShare::Itself(_)) => {
            "The organization is sending as much at once as it may. Nothing was stored; try again"
        }
        (BudgetUse::Bodies, BudgetShare::Application(..)) => {
            "The application is sending as much at once as it may. Nothing was stored; try again"
        }
        (BudgetUse::Bodies, BudgetShare::AllSources(_)) => {
            "The sources of the organization are taking in as much at once as they may. Nothing was stored; try again"
        }
        (BudgetUse::Bodies, BudgetShare::Source(..)) => {
            "The source is taking in as much at once as it may. Nothing was stored; try again"
        }
        (BudgetUse::Responses, _) => {
            "Large answers wait to be read, as many as you may have at once. Read them and try again, or with a smaller \
             limit"
        }
    })
}

fn busy(detail: &'static str) -> Error {
    Error::later(StatusCode::SERVICE_UNAVAILABLE, Code::Busy, detail, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn taken(budget: &MemoryBudget) -> usize {
        budget.0.taken.load(Ordering::Relaxed)
    }

    fn organization(number: u8) -> Option<Holder> {
        Some(Holder { org: OrgId::from_bytes([number; 20]), app: None, at_source: false })
    }

    fn application(org: u8, app: u8) -> Option<Holder> {
        let app = Some(AppId::from_bytes([app; 20]));
        Some(Holder { org: OrgId::from_bytes([org; 20]), app, at_source: false })
    }

    fn source(org: u8, app: u8) -> Option<Holder> {
        Some(Holder::at_source(OrgId::from_bytes([org; 20]), AppId::from_bytes([app; 20])))
    }

    #[test]
    fn memory_is_held_up_to_the_limit_and_released_on_drop() {
        let budget = MemoryBudget::of_bodies(100, 100);
        let (mut first, mut second) = (budget.enter(None), budget.enter(None));
        assert_eq!(taken(&budget), 0, "a caller that has sent nothing holds nothing");
        first.take_whole(60).unwrap();
        second.take_whole(41).unwrap_err();
        assert_eq!(taken(&budget), 60, "a refusal costs nothing");
        second.take_whole(40).unwrap();
        first.take_whole(60).expect("it has that already");
        first.take_whole(10).expect("and more than that");
        first.take_whole(61).unwrap_err();
        drop(second);
        first.take_whole(100).unwrap();
        drop(first);
        assert_eq!(taken(&budget), 0);
    }

    #[test]
    fn an_impossible_length_is_refused() {
        let budget = MemoryBudget::of_bodies(usize::MAX, 1);
        let (mut first, mut second) = (budget.enter(organization(1)), budget.enter(organization(1)));
        first.grow_to(1).unwrap();
        second.grow_to(usize::MAX).unwrap_err();
    }

    #[test]
    fn large_bodies_and_large_holders_leave_a_reserve_to_others() {
        let budget = MemoryBudget::of_bodies(4096 * KIB, 0);
        let grown = |number: u8, bytes: usize| {
            let mut memory = budget.enter(organization(number));
            memory.grow_to(bytes).map(|()| memory)
        };
        let large: Vec<_> = (0..6).map(|org| grown(org, 512 * KIB).unwrap()).collect();
        assert_eq!(taken(&budget), 3072 * KIB);
        grown(9, 65 * KIB).unwrap_err();
        grown(0, 1).unwrap_err();
        // Two small ones are an eighth of a megabyte, and that is little.
        let little: Vec<_> = (10..14).flat_map(|org| [org; 3]).flat_map(|org| grown(org, 64 * KIB)).collect();
        assert_eq!(little.len(), 8);
        grown(14, 1).unwrap_err();
        let whole: Vec<_> = (0..9)
            .map(|_| {
                let mut memory = budget.enter(organization(0));
                memory.take_whole(64 * KIB).map(|()| memory)
            })
            .collect();
        assert_eq!(whole.iter().filter(|memory| memory.is_ok()).count(), 8, "up to the last byte");
        drop((large, little, whole));
        assert_eq!(taken(&budget), 0);
        assert!(budget.0.held.lock().is_empty());
    }

    #[test]
    fn an_organization_holds_half_and_a_key_of_an_application_a_quarter() {
        let budget = MemoryBudget::of_bodies(1024 * KIB, 0);
        let hold = |holder| {
            let mut budget: Vec<_> = std::iter::repeat_with(|| budget.enter(holder)).take(100).collect();
            budget.retain_mut(|memory| memory.grow_to(64 * KIB).is_ok());
            budget
        };
        let of_key = hold(application(1, 1));
        assert_eq!(of_key.len(), 4, "a quarter of the megabyte");
        let of_org = hold(organization(1));
        assert_eq!(of_org.len(), 4, "what is left of the organization's half");
        let error = budget.enter(application(1, 2)).grow_to(64 * KIB).unwrap_err();
        assert!(format!("{error:?}").contains("The organization is sending"), "{error:?}");
        budget.enter(application(1, 2)).grow_to(32 * KIB).expect("it holds little");
        budget.enter(application(1, 2)).take_whole(SMALL_BODY_BYTES).expect("nobody can hold that");
        assert_eq!(hold(organization(2)).len(), 4, "all that is for all");
        drop(of_key);
        assert_eq!(hold(application(1, 2)).len(), 4);
    }

    #[test]
    fn senders_to_sources_take_nothing_from_the_organization() {
        let budget = MemoryBudget::of_bodies(1024 * KIB, 0);
        let hold = |holder| {
            let mut budget: Vec<_> = std::iter::repeat_with(|| budget.enter(holder)).take(100).collect();
            budget.retain_mut(|memory| memory.grow_to(64 * KIB).is_ok());
            budget
        };
        let one = hold(source(1, 1));
        assert_eq!(one.len(), 2, "an eighth of the megabyte");
        let error = budget.enter(source(1, 1)).grow_to(64 * KIB).unwrap_err();
        assert!(format!("{error:?}").contains("The source is taking in"), "{error:?}");
        let other = hold(source(1, 2));
        assert_eq!(other.len(), 2, "a quarter with the former");
        assert_eq!(hold(source(1, 3)).len(), 0);
        assert_eq!(hold(application(1, 1)).len(), 4, "its own callers have all that is theirs");
        let of_org = hold(organization(1));
        assert_eq!(of_org.len(), 8, "and the organization its half");
        drop((one, other, of_org));
        assert!(budget.0.held.lock().is_empty());
    }

    #[test]
    fn a_caller_that_holds_nothing_may_hold_one_body_larger_than_its_share() {
        let budget = MemoryBudget::of_bodies(1024 * KIB, 1000 * KIB);
        let mut only = budget.enter(application(1, 1));
        for size in [200, 400, 1000] {
            only.grow_to(size * KIB).unwrap();
        }
        budget.enter(application(1, 1)).grow_to(1).unwrap_err();
        budget.enter(organization(1)).grow_to(65 * KIB).unwrap_err();
        budget.enter(application(1, 2)).grow_to(1).unwrap();
        budget.enter(organization(2)).grow_to(1).unwrap();
    }

    #[test]
    fn memory_that_cannot_be_refused_is_counted() {
        let budget = MemoryBudget::of_bodies(1024 * KIB, 0);
        let mut late = budget.enter(organization(1));
        late.grow_anyway(2048 * KIB);
        assert_eq!(taken(&budget), 2048 * KIB);
        budget.enter(organization(1)).grow_to(1).unwrap_err();
        drop(late);
        assert_eq!(taken(&budget), 0);
        budget.enter(organization(1)).grow_to(1).unwrap();
    }

    #[test]
    fn concurrent_holders_never_exceed_the_limit() {
        let budget = MemoryBudget::of_bodies(1000, 1000);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let budget = &budget;
                scope.spawn(move || {
                    for bytes in 0..10_000 {
                        let mut memory = budget.enter(application(number % 2, number));
                        let fits =
                            memory.take_whole(bytes % 400).is_ok() && memory.grow_to(bytes % 800).is_ok();
                        assert!(!fits || taken(budget) <= 1000);
                    }
                });
            }
        });
        assert_eq!(taken(&budget), 0);
        assert!(budget.0.held.lock().is_empty());
    }
}
