//! Room in memory for the bodies of requests and for large answers: one bound over all connections, a share of it
//! for each organization and for each application's own callers, and a part that is left to small bodies of those
//! who hold little.

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

/// Bytes up to which a body is small. One that came in one piece is counted, and has no other bound than the
/// whole: nobody can hold it by being slow.
pub(crate) const SMALL: usize = 64 * 1024;
/// All together leave a quarter of the whole to small bodies of those who hold no more than a small part; and they
/// half of that to bodies that came in one piece.
const LEFT: usize = 4;
const LITTLE: usize = 32;
/// The parts that an organization may hold, and a caller for one application alone. Whoever holds nothing may
/// hold one that is larger.
const ORGANIZATIONS: usize = 2;
const APPLICATIONS: usize = 4;
/// What may be held by strangers who send to an organization's doors, and to one of them. It counts for nobody else:
/// whoever has the address of a door could keep the organization from its own.
const ALL_DOORS: usize = 4;
const DOORS: usize = 8;

/// How much room there is, and how much of it is taken.
#[derive(Clone, Debug)]
pub(crate) struct Rooms(Arc<House>);

#[derive(Debug)]
struct House {
    of: What,
    limit: usize,
    /// Of it, what all may fill, and up to where those may who hold little.
    for_all: usize,
    for_little: usize,
    taken: AtomicUsize,
    /// What those hold who hold something, apart from what is small and came in one piece.
    held: Mutex<HashMap<Owner, usize>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Bodies,
    Answers,
}

/// Whose rooms are counted together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Owner {
    /// All callers of the organization.
    Organization(OrgId),
    /// Those among them that are for the whole of it.
    Itself(OrgId),
    /// Those that are for one application alone.
    Application(OrgId, AppId),
    /// Whoever sends to a door of the organization.
    Doors(OrgId),
    /// Whoever sends to the door that has this application.
    Door(OrgId, AppId),
}

/// Who holds a room.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder {
    org: OrgId,
    /// The only application that the caller is for.
    app: Option<AppId>,
    at_door: bool,
}

impl From<&Caller> for Holder {
    fn from(caller: &Caller) -> Self {
        Self { org: caller.org(), app: caller.app(), at_door: false }
    }
}

impl Holder {
    /// Whoever sends to the door of an application.
    pub(crate) fn at_door(org: OrgId, app: AppId) -> Self {
        Self { org, app: Some(app), at_door: true }
    }

    fn direct(self) -> Owner {
        match self.app {
            None => Owner::Itself(self.org),
            Some(app) if self.at_door => Owner::Door(self.org, app),
            Some(app) => Owner::Application(self.org, app),
        }
    }

    fn owners(self) -> [Owner; 2] {
        let all = if self.at_door { Owner::Doors(self.org) } else { Owner::Organization(self.org) };
        [self.direct(), all]
    }
}

/// The room of one body or answer, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    of: Rooms,
    holder: Option<Holder>,
    bytes: usize,
    /// Those among them that count for the holder's share.
    shared: usize,
}

impl Rooms {
    pub(crate) fn of_bodies(limits: &Limits) -> Self {
        Self::for_bodies(limits.body_bytes, body::largest(limits))
    }

    pub(crate) fn of_answers(limits: &Limits) -> Self {
        Self::for_answers(limits.answer_bytes)
    }

    /// One body of the largest that there are must find room beside small ones.
    fn for_bodies(limit: usize, largest: usize) -> Self {
        Self::new(What::Bodies, limit, (limit - limit / LEFT).max(largest).min(limit))
    }

    /// Small answers are not counted: a connection has one at a time.
    fn for_answers(limit: usize) -> Self {
        Self::new(What::Answers, limit, limit)
    }

    fn new(of: What, limit: usize, for_all: usize) -> Self {
        let for_little = limit - (limit - for_all) / 2;
        let (taken, held) = (AtomicUsize::new(0), Mutex::default());
        Self(Arc::new(House { of, limit, for_all, for_little, taken, held }))
    }

    /// None as yet.
    pub(crate) fn enter(&self, holder: Option<Holder>) -> Room {
        Room { of: self.clone(), holder, bytes: 0, shared: 0 }
    }

    pub(crate) fn limit(&self) -> usize {
        self.0.limit
    }
}

impl House {
    fn share(&self, owner: &Owner) -> usize {
        match owner {
            Owner::Organization(_) | Owner::Itself(_) => self.limit / ORGANIZATIONS,
            Owner::Application(..) => self.limit / APPLICATIONS,
            Owner::Doors(_) => self.limit / ALL_DOORS,
            Owner::Door(..) => self.limit / DOORS,
        }
    }
}

impl Room {
    /// For a body that is there already, in one piece.
    pub(crate) fn take_whole(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes > SMALL {
            return self.grow_to(bytes);
        }
        let limit = self.of.0.limit;
        self.take(bytes, limit)
    }

    /// Grows to so many bytes in all. Nobody waits for room: whoever holds a part of it might be
    /// waiting for the rest.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> Result<(), Error> {
        if bytes <= self.bytes {
            return Ok(());
        }
        let house = self.of.0.clone();
        let mut held = house.held.lock();
        let more = bytes - self.shared;
        let there = |owner: &Owner| held.get(owner).copied().unwrap_or(0);
        let with_it = |owner: &Owner| there(owner).saturating_add(more);
        let direct = self.holder.map_or(0, |holder| with_it(&holder.direct()));
        if bytes <= SMALL && direct <= house.limit / LITTLE {
            self.take(bytes, house.for_little)?;
        } else {
            let is_over = |owner: &Owner| there(owner) > self.shared && with_it(owner) > house.share(owner);
            if let Some(owner) = self.owners().find(is_over) {
                return Err(share_is_taken(house.of, &owner));
            }
            self.take(bytes, house.for_all)?;
        }
        self.hold(&mut held, more);
        Ok(())
    }

    /// The same where it is too late to refuse: what follows finds less room.
    pub(crate) fn grow_anyway(&mut self, bytes: usize) {
        let house = self.of.0.clone();
        let mut held = house.held.lock();
        house.taken.fetch_add(bytes.saturating_sub(self.bytes), Ordering::Relaxed);
        self.bytes = self.bytes.max(bytes);
        let more = self.bytes - self.shared;
        self.hold(&mut held, more);
    }

    fn owners(&self) -> impl Iterator<Item = Owner> + use<> {
        self.holder.into_iter().flat_map(Holder::owners)
    }

    /// Up to a bound for all together, or up to the limit if nobody else has any.
    fn take(&mut self, bytes: usize, most: usize) -> Result<(), Error> {
        let Some(more) = bytes.checked_sub(self.bytes).filter(|more| *more > 0) else { return Ok(()) };
        let House { of, limit, taken, .. } = &*self.of.0;
        let fits = |taken: usize| {
            let most = if taken == self.bytes { *limit } else { most };
            taken.checked_add(more).filter(|taken| *taken <= most)
        };
        taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|_| all_is_taken(*of))?;
        self.bytes = bytes;
        Ok(())
    }

    fn hold(&mut self, held: &mut HashMap<Owner, usize>, more: usize) {
        for owner in self.owners() {
            *held.entry(owner).or_default() += more;
        }
        self.shared += more;
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.of.0.taken.fetch_sub(self.bytes, Ordering::Relaxed);
        if self.shared == 0 {
            return;
        }
        let mut held = self.of.0.held.lock();
        for owner in self.owners() {
            if let Some(there) = held.get_mut(&owner) {
                *there -= self.shared;
                if *there == 0 {
                    held.remove(&owner);
                }
            }
        }
    }
}

fn all_is_taken(of: What) -> Error {
    no_room(match of {
        What::Bodies => {
            "The server is reading as many requests as it has room for. Nothing was stored; try again"
        }
        What::Answers => {
            "The server holds as many large answers as it has room for, until they are read. Try again, with a smaller \
             limit"
        }
    })
}

fn share_is_taken(of: What, owner: &Owner) -> Error {
    no_room(match (of, owner) {
        (What::Bodies, Owner::Organization(_) | Owner::Itself(_)) => {
            "The organization is sending as much at once as it may. Nothing was stored; try again"
        }
        (What::Bodies, Owner::Application(..)) => {
            "The application is sending as much at once as it may. Nothing was stored; try again"
        }
        (What::Bodies, Owner::Doors(_)) => {
            "The sources of the organization are taking in as much at once as they may. Nothing was stored; try again"
        }
        (What::Bodies, Owner::Door(..)) => {
            "The source is taking in as much at once as it may. Nothing was stored; try again"
        }
        (What::Answers, _) => {
            "Large answers wait to be read, as many as you may have at once. Read them and try again, or with a smaller \
             limit"
        }
    })
}

fn no_room(detail: &'static str) -> Error {
    Error::later(StatusCode::SERVICE_UNAVAILABLE, Code::Busy, detail, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIB: usize = 1024;

    fn taken(rooms: &Rooms) -> usize {
        rooms.0.taken.load(Ordering::Relaxed)
    }

    fn organization(number: u8) -> Option<Holder> {
        Some(Holder { org: OrgId::from_bytes([number; 20]), app: None, at_door: false })
    }

    fn application(org: u8, app: u8) -> Option<Holder> {
        let app = Some(AppId::from_bytes([app; 20]));
        Some(Holder { org: OrgId::from_bytes([org; 20]), app, at_door: false })
    }

    fn door(org: u8, app: u8) -> Option<Holder> {
        Some(Holder::at_door(OrgId::from_bytes([org; 20]), AppId::from_bytes([app; 20])))
    }

    #[test]
    fn room_is_given_up_to_the_limit_and_given_back_at_the_end() {
        let rooms = Rooms::for_bodies(100, 100);
        let (mut first, mut second) = (rooms.enter(None), rooms.enter(None));
        assert_eq!(taken(&rooms), 0, "whoever has sent nothing holds nothing");
        first.take_whole(60).unwrap();
        second.take_whole(41).unwrap_err();
        assert_eq!(taken(&rooms), 60, "a refusal costs nothing");
        second.take_whole(40).unwrap();
        first.take_whole(60).expect("it has that already");
        first.take_whole(10).expect("and more than that");
        first.take_whole(61).unwrap_err();
        drop(second);
        first.take_whole(100).unwrap();
        drop(first);
        assert_eq!(taken(&rooms), 0);
    }

    #[test]
    fn a_length_that_no_memory_has_is_refused() {
        let rooms = Rooms::for_bodies(usize::MAX, 1);
        let (mut first, mut second) = (rooms.enter(organization(1)), rooms.enter(organization(1)));
        first.grow_to(1).unwrap();
        second.grow_to(usize::MAX).unwrap_err();
    }

    #[test]
    fn large_bodies_and_those_of_whoever_holds_much_leave_room_to_others() {
        let rooms = Rooms::for_bodies(4096 * KIB, 0);
        let grown = |number: u8, bytes: usize| {
            let mut room = rooms.enter(organization(number));
            room.grow_to(bytes).map(|()| room)
        };
        let large: Vec<_> = (0..6).map(|org| grown(org, 512 * KIB).unwrap()).collect();
        assert_eq!(taken(&rooms), 3072 * KIB);
        grown(9, 65 * KIB).unwrap_err();
        grown(0, 1).unwrap_err();
        // Two small ones are an eighth of a megabyte, and that is little.
        let little: Vec<_> = (10..14).flat_map(|org| [org; 3]).flat_map(|org| grown(org, 64 * KIB)).collect();
        assert_eq!(little.len(), 8);
        grown(14, 1).unwrap_err();
        let whole: Vec<_> = (0..9)
            .map(|_| {
                let mut room = rooms.enter(organization(0));
                room.take_whole(64 * KIB).map(|()| room)
            })
            .collect();
        assert_eq!(whole.iter().filter(|room| room.is_ok()).count(), 8, "up to the last byte");
        drop((large, little, whole));
        assert_eq!(taken(&rooms), 0);
        assert!(rooms.0.held.lock().is_empty());
    }

    #[test]
    fn an_organization_holds_half_and_a_key_of_an_application_a_quarter() {
        let rooms = Rooms::for_bodies(1024 * KIB, 0);
        let hold = |holder| {
            let mut rooms: Vec<_> = std::iter::repeat_with(|| rooms.enter(holder)).take(100).collect();
            rooms.retain_mut(|room| room.grow_to(64 * KIB).is_ok());
            rooms
        };
        let of_key = hold(application(1, 1));
        assert_eq!(of_key.len(), 4, "a quarter of the megabyte");
        let of_org = hold(organization(1));
        assert_eq!(of_org.len(), 4, "what is left of the organization's half");
        let error = rooms.enter(application(1, 2)).grow_to(64 * KIB).unwrap_err();
        assert!(format!("{error:?}").contains("The organization is sending"), "{error:?}");
        rooms.enter(application(1, 2)).grow_to(32 * KIB).expect("it holds little");
        rooms.enter(application(1, 2)).take_whole(SMALL).expect("nobody can hold that");
        assert_eq!(hold(organization(2)).len(), 4, "all that is for all");
        drop(of_key);
        assert_eq!(hold(application(1, 2)).len(), 4);
    }

    #[test]
    fn what_strangers_hold_at_doors_takes_nothing_from_the_organization() {
        let rooms = Rooms::for_bodies(1024 * KIB, 0);
        let hold = |holder| {
            let mut rooms: Vec<_> = std::iter::repeat_with(|| rooms.enter(holder)).take(100).collect();
            rooms.retain_mut(|room| room.grow_to(64 * KIB).is_ok());
            rooms
        };
        let one = hold(door(1, 1));
        assert_eq!(one.len(), 2, "an eighth of the megabyte");
        let error = rooms.enter(door(1, 1)).grow_to(64 * KIB).unwrap_err();
        assert!(format!("{error:?}").contains("The source is taking in"), "{error:?}");
        let other = hold(door(1, 2));
        assert_eq!(other.len(), 2, "a quarter with the former");
        assert_eq!(hold(door(1, 3)).len(), 0);
        assert_eq!(hold(application(1, 1)).len(), 4, "its own callers have all that is theirs");
        let of_org = hold(organization(1));
        assert_eq!(of_org.len(), 8, "and the organization its half");
        drop((one, other, of_org));
        assert!(rooms.0.held.lock().is_empty());
    }

    #[test]
    fn whoever_holds_nothing_may_hold_one_that_is_larger_than_the_share() {
        let rooms = Rooms::for_bodies(1024 * KIB, 1000 * KIB);
        let mut only = rooms.enter(application(1, 1));
        for size in [200, 400, 1000] {
            only.grow_to(size * KIB).unwrap();
        }
        rooms.enter(application(1, 1)).grow_to(1).unwrap_err();
        rooms.enter(organization(1)).grow_to(65 * KIB).unwrap_err();
        rooms.enter(application(1, 2)).grow_to(1).unwrap();
        rooms.enter(organization(2)).grow_to(1).unwrap();
    }

    #[test]
    fn what_cannot_be_refused_is_counted() {
        let rooms = Rooms::for_bodies(1024 * KIB, 0);
        let mut late = rooms.enter(organization(1));
        late.grow_anyway(2048 * KIB);
        assert_eq!(taken(&rooms), 2048 * KIB);
        rooms.enter(organization(1)).grow_to(1).unwrap_err();
        drop(late);
        assert_eq!(taken(&rooms), 0);
        rooms.enter(organization(1)).grow_to(1).unwrap();
    }

    #[test]
    fn many_at_once_never_have_more_than_there_is() {
        let rooms = Rooms::for_bodies(1000, 1000);
        std::thread::scope(|scope| {
            for number in 0..4 {
                let rooms = &rooms;
                scope.spawn(move || {
                    for bytes in 0..10_000 {
                        let mut room = rooms.enter(application(number % 2, number));
                        let fits = room.take_whole(bytes % 400).is_ok() && room.grow_to(bytes % 800).is_ok();
                        assert!(!fits || taken(rooms) <= 1000);
                    }
                });
            }
        });
        assert_eq!(taken(&rooms), 0);
        assert!(rooms.0.held.lock().is_empty());
    }
}
