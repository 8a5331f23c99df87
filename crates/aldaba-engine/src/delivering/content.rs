//! Payloads in memory: shared by the deliveries of a message, bounded in bytes.
//!
//! There is a budget for deliveries that wait in their lanes: what does not fit is read again at its
//! turn. And there is one as large for what was read again and is on its way: an attempt waits until
//! there is room. They are apart because what waits must not be able to keep what is on its way from
//! moving. Half of the second is only for lanes that answer quickly, because receivers that do not read
//! what they are sent hold their payloads for long (over a new connection a payload is free once it is
//! written, over a kept one when it is answered). No application has more than half of either half, so
//! that what one tenant's receivers do stays with that tenant.

use crate::scheduling::FixedMap;
use aldaba_delivery::{AppId, MessageId};
use aldaba_store::{Content, Error};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Budgets are counted in steps of so many bytes.
const STEP: usize = 1024;
/// How many applications' parts are remembered before those that are not in use are looked for.
const OWN_PARTS: usize = 1024;
/// What a payload costs beside its bytes.
const OVERHEAD: usize = 128;

/// What was read again and is on its way, by message and by the half that it counts against.
type Listed = Arc<Mutex<FixedMap<(MessageId, bool), Weak<HeldContent>>>>;

/// On whose account a payload is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Payer {
    pub(crate) app: AppId,
    /// Its lane answers quickly.
    pub(crate) quick: bool,
}

/// The two budgets, and what was read again.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    waiting: Arc<Semaphore>,
    /// To receivers that answer quickly, and to the others.
    sending: [Arc<Semaphore>; 2],
    /// The most steps that one payload counts for.
    most: u32,
    read: Listed,
    /// What is being read, by how many, and whether it was deleted meanwhile.
    reading: Arc<Mutex<FixedMap<MessageId, (usize, bool)>>>,
    /// What each application may have of them.
    own: Arc<Mutex<FixedMap<Payer, Weak<Semaphore>>>>,
}

/// A payload that counts against a budget until the last delivery lets go of it.
#[derive(Debug)]
pub(crate) struct HeldContent {
    content: Arc<Content>,
    _room: Room,
    deleted: AtomicBool,
    /// Where it is found by other deliveries of the same message.
    listed: Option<((MessageId, bool), Listed)>,
}

/// Of everybody's budget, and of the application's own part where it has one.
type Room = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl Contents {
    /// `limit`: bytes in all.
    pub(crate) fn new(limit: usize) -> Self {
        let quarter = (limit / 4 / STEP).clamp(1, (Semaphore::MAX_PERMITS / 2).min(u32::MAX as usize));
        let room = |steps| Arc::new(Semaphore::new(steps));
        Self {
            waiting: room(quarter * 2),
            sending: [room(quarter), room(quarter)],
            most: u32::try_from(quarter).unwrap_or(u32::MAX),
            read: Arc::default(),
            reading: Arc::default(),
            own: Arc::default(),
        }
    }

    /// Keeps a payload in memory for deliveries that wait, if the budget allows.
    pub(crate) fn hold(&self, content: &Arc<Content>) -> Option<Arc<HeldContent>> {
        let room = self.waiting.clone().try_acquire_many_owned(self.steps_of(content)).ok()?;
        Some(Arc::new(HeldContent {
            content: content.clone(),
            _room: (room, None),
            deleted: AtomicBool::new(false),
            listed: None,
        }))
    }

    /// The payload of a message that is about to be sent: one read for all its deliveries that go
    /// out at the same time. `None`: it is gone.
    pub(crate) async fn load<F>(
        &self,
        message: MessageId,
        payer: Payer,
        read: impl Fn() -> F,
    ) -> Result<Option<Arc<HeldContent>>, Error>
    where
        F: Future<Output = Result<Option<Content>, Error>>,
    {
        let mut room = None;
        let reading = Reading::begin(self, message);
        loop {
            if let Some(held) = self.read.lock().get(&(message, payer.quick)).and_then(Weak::upgrade) {
                return Ok(Some(held));
            }
            let Some(content) = read().await? else {
                return Ok(None);
            };
            if reading.is_deleted() {
                return Ok(None);
            }
            let steps = self.steps_of(&content);
            match room.take().or_else(|| self.try_room(payer, steps)) {
                Some(granted) => return Ok(Some(self.list((message, payer.quick), content, granted))),
                None => {
                    // It is let go while there is no room, and read again when there is.
                    drop(content);
                    room = Some(self.wait_for_room(payer, steps).await.ok_or(Error::Closed)?);
                }
            }
        }
    }

    /// A payload was deleted: whoever reads it does not get it, and whoever holds what was read is told so.
    pub(crate) fn forget(&self, message: MessageId) {
        if let Some((_, deleted)) = self.reading.lock().get_mut(&message) {
            *deleted = true;
        }
        let held = [false, true].map(|quick| self.read.lock().remove(&(message, quick)));
        for held in held.iter().flatten().filter_map(Weak::upgrade) {
            held.deleted.store(true, Ordering::Relaxed);
        }
    }

    fn try_room(&self, payer: Payer, steps: u32) -> Option<Room> {
        let own = self.own(payer).try_acquire_many_owned(steps.min(self.own_part())).ok()?;
        let all = self.sending(payer).try_acquire_many_owned(steps).ok()?;
        Some((all, Some(own)))
    }

    /// First among those of the application, then among all: so an application has no more than its
    /// part of the line either.
    async fn wait_for_room(&self, payer: Payer, steps: u32) -> Option<Room> {
        let own = self.own(payer).acquire_many_owned(steps.min(self.own_part())).await.ok()?;
        let all = self.sending(payer).acquire_many_owned(steps).await.ok()?;
        Some((all, Some(own)))
    }

    fn sending(&self, payer: Payer) -> Arc<Semaphore> {
        self.sending[usize::from(!payer.quick)].clone()
    }

    fn own(&self, payer: Payer) -> Arc<Semaphore> {
        let mut own = self.own.lock();
        if let Some(semaphore) = own.get(&payer).and_then(Weak::upgrade) {
            return semaphore;
        }
        // Those that nobody holds anything of are forgotten, now and then.
        if own.len() >= OWN_PARTS {
            own.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let semaphore = Arc::new(Semaphore::new(self.own_part() as usize));
        own.insert(payer, Arc::downgrade(&semaphore));
        semaphore
    }

    fn own_part(&self) -> u32 {
        self.most.div_ceil(2)
    }

    fn list(&self, key: (MessageId, bool), content: Content, room: Room) -> Arc<HeldContent> {
        let listed = Some((key, self.read.clone()));
        let deleted = AtomicBool::new(false);
        let held = Arc::new(HeldContent { content: Arc::new(content), _room: room, deleted, listed });
        self.read.lock().insert(key, Arc::downgrade(&held));
        held
    }

    /// One that is larger than a whole budget takes all of it.
    fn steps_of(&self, content: &Content) -> u32 {
        let bytes = content.bytes() + content.event_type.len() + OVERHEAD;
        u32::try_from(bytes.div_ceil(STEP)).unwrap_or(u32::MAX).min(self.most)
    }
}

/// A read under way, which must hear of it if its message is deleted.
struct Reading<'a> {
    contents: &'a Contents,
    message: MessageId,
}

impl<'a> Reading<'a> {
    fn begin(contents: &'a Contents, message: MessageId) -> Self {
        contents.reading.lock().entry(message).or_default().0 += 1;
        Self { contents, message }
    }

    fn is_deleted(&self) -> bool {
        self.contents.reading.lock().get(&self.message).is_some_and(|(_, deleted)| *deleted)
    }
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut reading = self.contents.reading.lock();
        if let Some((readers, _)) = reading.get_mut(&self.message) {
            *readers -= 1;
            if *readers == 0 {
                reading.remove(&self.message);
            }
        }
    }
}

impl HeldContent {
    /// It was deleted after it had been read: it must not go out.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Relaxed)
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// The payload's bytes. They count against the budget until the last copy of them is gone.
    pub(crate) fn into_bytes(self: Arc<Self>) -> Bytes {
        Bytes::from_owner(Lent(self))
    }
}

struct Lent(Arc<HeldContent>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0.content.payload
    }
}

impl Drop for HeldContent {
    fn drop(&mut self) {
        if let Some((key, list)) = self.listed.take() {
            let mut list = list.lock();
            // Another one may have been read and listed in the meantime.
            if list.get(&key).is_some_and(|held| held.strong_count() == 0) {
                list.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const SLOW: Payer = Payer { app: AppId::from_bytes([1; 20]), quick: false };

    fn content(bytes: usize) -> Content {
        Content::new("t", vec![0; bytes])
    }

    fn message(number: u8) -> MessageId {
        MessageId::from_bytes([number; 20])
    }

    #[test]
    fn a_payload_over_the_budget_is_not_held_and_costs_nothing() {
        let contents = Contents::new(16 * STEP);
        let large = Arc::new(content(3 * STEP));
        let (first, _second) = (contents.hold(&large).expect("fits"), contents.hold(&large).expect("fits"));
        assert!(contents.hold(&large).is_none());
        drop(first);
        assert!(contents.hold(&large).is_some());
    }

    #[test]
    fn headers_of_a_message_count_as_its_payload_does() {
        let contents = Contents::new(16 * STEP);
        let headers = Some(Bytes::from(vec![0; 3 * STEP]));
        let large = Arc::new(Content { sealed_headers: headers, ..content(1) });
        let _held = (contents.hold(&large).expect("fits"), contents.hold(&large).expect("fits"));
        assert!(contents.hold(&large).is_none());
    }

    #[tokio::test]
    async fn deliveries_of_one_message_share_one_read() {
        let (contents, reads) = (Contents::new(1 << 20), AtomicUsize::new(0));
        let read = || async {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(Some(content(100)))
        };
        let first = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        let second = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        drop((first, second));
        assert!(contents.read.lock().is_empty(), "nothing is listed that nobody holds");
    }

    #[tokio::test]
    async fn what_is_deleted_while_it_is_read_or_held_is_not_sent() {
        let contents = Contents::new(1 << 20);
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let answered = std::cell::Cell::new(Some(answered));
        let late = || {
            let answered = answered.take().expect("one read");
            async {
                answered.await.expect("an answer");
                Ok(Some(content(100)))
            }
        };
        let mut reading = Box::pin(contents.load(message(1), SLOW, late));
        assert!(futures_util::poll!(&mut reading).is_pending());
        let held = contents.load(message(2), SLOW, || async { Ok(Some(content(100))) }).await;
        let held = held.expect("a read").expect("content");
        contents.forget(message(1));
        contents.forget(message(2));
        answer.send(()).expect("somebody waits");
        assert!(reading.await.expect("a read").is_none());
        assert!(held.is_deleted());
        assert!(contents.reading.lock().is_empty(), "nothing is remembered that nobody reads");
        // Another message is not concerned.
        let other = contents.load(message(3), SLOW, || async { Ok(Some(content(100))) }).await;
        assert!(!other.expect("a read").expect("content").is_deleted());
    }

    #[tokio::test]
    async fn an_attempt_waits_while_the_payloads_on_their_way_fill_the_budget() {
        let contents = Contents::new(40 * STEP);
        let read = || async { Ok(Some(content(8 * STEP))) };
        let (other, quick) =
            (Payer { app: AppId::from_bytes([2; 20]), ..SLOW }, Payer { quick: true, ..SLOW });
        let first = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        let mut second = Box::pin(contents.load(message(2), other, read));
        assert!(futures_util::poll!(&mut second).is_pending(), "there is no room for a second one");
        let quick = contents.load(message(3), quick, read).await.expect("a read");
        assert!(quick.is_some(), "receivers that answer have room of their own");
        let bytes = first.into_bytes();
        assert!(futures_util::poll!(&mut second).is_pending(), "it is still being written");
        drop(bytes);
        assert!(second.await.expect("a read").is_some());
    }

    #[tokio::test]
    async fn an_application_leaves_room_for_the_others() {
        let contents = Contents::new(80 * STEP);
        let read = || async { Ok(Some(content(4 * STEP))) };
        let other = Payer { app: AppId::from_bytes([2; 20]), ..SLOW };
        let _held = [
            contents.load(message(1), SLOW, read).await.expect("a read"),
            contents.load(message(2), SLOW, read).await.expect("a read"),
        ];
        let mut third = Box::pin(contents.load(message(3), SLOW, read));
        assert!(futures_util::poll!(&mut third).is_pending(), "half of the room is all that it gets");
        assert!(contents.load(message(4), other, read).await.expect("a read").is_some());
    }

    #[tokio::test]
    async fn what_a_quick_receiver_pays_for_is_not_held_by_a_slow_one() {
        let (contents, reads) = (Contents::new(1 << 20), AtomicUsize::new(0));
        let read = || async {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(Some(content(100)))
        };
        let quick = Payer { quick: true, ..SLOW };
        let first = contents.load(message(1), quick, read).await.expect("a read").expect("content");
        let second = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        assert!(!Arc::ptr_eq(&first, &second));
        assert_eq!(reads.load(Ordering::Relaxed), 2);
    }
}
