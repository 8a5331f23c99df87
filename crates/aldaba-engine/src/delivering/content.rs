//! Payloads in memory: shared by the deliveries of a message, limited in bytes.
//!
//! One half of the memory is for payloads of deliveries that wait in their lanes. A payload that does not
//! fit is read again when it is sent. The other half is for payloads that are read again and being sent: an
//! attempt waits until there is memory. The halves are separate so that waiting deliveries cannot block
//! sending ones.
//!
//! Half of the sending memory is reserved for responsive lanes, because receivers that do not read hold
//! their payloads for long (over a new connection a payload is free once written, over a reused one once
//! answered). No application gets more than half of either part, so one tenant's receivers affect only that
//! tenant.

use crate::scheduling::FixedMap;
use aldaba_delivery::{AppId, MessageId};
use aldaba_store::{Content, Error};
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes of one permit of a budget.
const PERMIT_BYTES: usize = 1024;
/// How many application budgets are remembered before unused ones are removed.
const APPLICATION_SHARES: usize = 1024;
/// The memory of a payload in addition to its bytes.
const OVERHEAD_BYTES: usize = 128;

/// Payloads that were read again and are being sent, by message and by whether the lane is responsive.
type LoadedContents = Arc<Mutex<FixedMap<(MessageId, bool), Weak<BudgetedContent>>>>;

/// The application and kind of lane that a payload is accounted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ContentOwner {
    pub(crate) app: AppId,
    /// Whether its receiver answers quickly.
    pub(crate) responsive: bool,
}

/// The memory budgets of payloads, and the payloads that were read again.
#[derive(Clone, Debug)]
pub(crate) struct ContentBudget {
    waiting: Arc<Semaphore>,
    /// For responsive receivers, and for the others.
    sending: [Arc<Semaphore>; 2],
    /// The most permits of one payload.
    max_permits: u32,
    read: LoadedContents,
    /// Pending reads: how many readers, and whether the message was deleted meanwhile.
    reads: Arc<Mutex<FixedMap<MessageId, (usize, bool)>>>,
    /// The share of each application.
    application_budgets: Arc<Mutex<FixedMap<ContentOwner, Weak<Semaphore>>>>,
}

/// A payload that counts against a budget until its last delivery drops it.
#[derive(Debug)]
pub(crate) struct BudgetedContent {
    content: Arc<Content>,
    _permit: ContentPermit,
    deleted: AtomicBool,
    /// Its key and the table in which other deliveries of the message find it.
    loaded_as: Option<((MessageId, bool), LoadedContents)>,
}

/// A permit of the overall budget, and one of the application's share if it has one.
type ContentPermit = (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>);

impl ContentBudget {
    /// `limit`: bytes overall.
    pub(crate) fn new(limit: usize) -> Self {
        let quarter =
            (limit / 4 / PERMIT_BYTES).clamp(1, (Semaphore::MAX_PERMITS / 2).min(u32::MAX as usize));
        let permit = |permits| Arc::new(Semaphore::new(permits));
        Self {
            waiting: permit(quarter * 2),
            sending: [permit(quarter), permit(quarter)],
            max_permits: u32::try_from(quarter).unwrap_or(u32::MAX),
            read: Arc::default(),
            reads: Arc::default(),
            application_budgets: Arc::default(),
        }
    }

    /// Keeps the payload of waiting deliveries in memory, if the budget allows.
    pub(crate) fn hold(&self, content: &Arc<Content>) -> Option<Arc<BudgetedContent>> {
        let permit = self.waiting.clone().try_acquire_many_owned(self.permits_of(content)).ok()?;
        Some(Arc::new(BudgetedContent {
            content: content.clone(),
            _permit: (permit, None),
            deleted: AtomicBool::new(false),
            loaded_as: None,
        }))
    }

    /// Loads the payload of a message that is about to be sent. Deliveries that are sent at the same time
    /// share one read. `None`: it was removed.
    pub(crate) async fn load<F>(
        &self,
        message: MessageId,
        owner: ContentOwner,
        read: impl Fn() -> F,
    ) -> Result<Option<Arc<BudgetedContent>>, Error>
    where
        F: Future<Output = Result<Option<Content>, Error>>,
    {
        let mut permit = None;
        let reads = ContentRead::begin(self, message);
        loop {
            if let Some(held) = self.read.lock().get(&(message, owner.responsive)).and_then(Weak::upgrade) {
                return Ok(Some(held));
            }
            let Some(content) = read().await? else {
                return Ok(None);
            };
            if reads.is_deleted() {
                return Ok(None);
            }
            let permits = self.permits_of(&content);
            match permit.take().or_else(|| self.try_permit(owner, permits)) {
                Some(granted) => {
                    return Ok(Some(self.insert_loaded((message, owner.responsive), content, granted)));
                }
                None => {
                    // It is dropped while there is no memory, and read again afterwards.
                    drop(content);
                    permit = Some(self.wait_for_permit(owner, permits).await.ok_or(Error::Closed)?);
                }
            }
        }
    }

    /// Marks a payload as deleted: pending reads do not get it, and holders see the mark.
    pub(crate) fn forget(&self, message: MessageId) {
        if let Some((_, deleted)) = self.reads.lock().get_mut(&message) {
            *deleted = true;
        }
        let held = [false, true].map(|responsive| self.read.lock().remove(&(message, responsive)));
        for held in held.iter().flatten().filter_map(Weak::upgrade) {
            held.deleted.store(true, Ordering::Relaxed);
        }
    }

    fn try_permit(&self, owner: ContentOwner, permits: u32) -> Option<ContentPermit> {
        let application_budgets = self
            .application_budgets(owner)
            .try_acquire_many_owned(permits.min(self.application_share()))
            .ok()?;
        let all = self.sending(owner).try_acquire_many_owned(permits).ok()?;
        Some((all, Some(application_budgets)))
    }

    /// Waits for the application's share first, so that an application cannot fill the overall queue either.
    async fn wait_for_permit(&self, owner: ContentOwner, permits: u32) -> Option<ContentPermit> {
        let application_budgets = self
            .application_budgets(owner)
            .acquire_many_owned(permits.min(self.application_share()))
            .await
            .ok()?;
        let all = self.sending(owner).acquire_many_owned(permits).await.ok()?;
        Some((all, Some(application_budgets)))
    }

    fn sending(&self, owner: ContentOwner) -> Arc<Semaphore> {
        self.sending[usize::from(!owner.responsive)].clone()
    }

    fn application_budgets(&self, owner: ContentOwner) -> Arc<Semaphore> {
        let mut application_budgets = self.application_budgets.lock();
        if let Some(semaphore) = application_budgets.get(&owner).and_then(Weak::upgrade) {
            return semaphore;
        }
        // Removes unused budgets now and then.
        if application_budgets.len() >= APPLICATION_SHARES {
            application_budgets.retain(|_, semaphore| semaphore.strong_count() > 0);
        }
        let semaphore = Arc::new(Semaphore::new(self.application_share() as usize));
        application_budgets.insert(owner, Arc::downgrade(&semaphore));
        semaphore
    }

    fn application_share(&self) -> u32 {
        self.max_permits.div_ceil(2)
    }

    fn insert_loaded(
        &self,
        key: (MessageId, bool),
        content: Content,
        permit: ContentPermit,
    ) -> Arc<BudgetedContent> {
        let loaded_as = Some((key, self.read.clone()));
        let deleted = AtomicBool::new(false);
        let held =
            Arc::new(BudgetedContent { content: Arc::new(content), _permit: permit, deleted, loaded_as });
        self.read.lock().insert(key, Arc::downgrade(&held));
        held
    }

    /// A payload larger than a whole budget takes all of it.
    fn permits_of(&self, content: &Content) -> u32 {
        let bytes = content.bytes() + content.event_type.len() + OVERHEAD_BYTES;
        u32::try_from(bytes.div_ceil(PERMIT_BYTES)).unwrap_or(u32::MAX).min(self.max_permits)
    }
}

/// A pending read, which must notice when its message is deleted.
struct ContentRead<'a> {
    contents: &'a ContentBudget,
    message: MessageId,
}

impl<'a> ContentRead<'a> {
    fn begin(contents: &'a ContentBudget, message: MessageId) -> Self {
        contents.reads.lock().entry(message).or_default().0 += 1;
        Self { contents, message }
    }

    fn is_deleted(&self) -> bool {
        self.contents.reads.lock().get(&self.message).is_some_and(|(_, deleted)| *deleted)
    }
}

impl Drop for ContentRead<'_> {
    fn drop(&mut self) {
        let mut reads = self.contents.reads.lock();
        if let Some((readers, _)) = reads.get_mut(&self.message) {
            *readers -= 1;
            if *readers == 0 {
                reads.remove(&self.message);
            }
        }
    }
}

impl BudgetedContent {
    /// Whether it was deleted after it was read: then it must not be sent.
    pub(crate) fn is_deleted(&self) -> bool {
        self.deleted.load(Ordering::Relaxed)
    }

    pub(crate) fn content(&self) -> &Content {
        &self.content
    }

    /// The payload's bytes. They count against the budget until the last copy is dropped.
    pub(crate) fn into_bytes(self: Arc<Self>) -> Bytes {
        Bytes::from_owner(PayloadBytes(self))
    }
}

struct PayloadBytes(Arc<BudgetedContent>);

impl AsRef<[u8]> for PayloadBytes {
    fn as_ref(&self) -> &[u8] {
        &self.0.content.payload
    }
}

impl Drop for BudgetedContent {
    fn drop(&mut self) {
        if let Some((key, insert_loaded)) = self.loaded_as.take() {
            let mut insert_loaded = insert_loaded.lock();
            // Another payload may have been inserted meanwhile.
            if insert_loaded.get(&key).is_some_and(|held| held.strong_count() == 0) {
                insert_loaded.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    const SLOW: ContentOwner = ContentOwner { app: AppId::from_bytes([1; 20]), responsive: false };

    fn content(bytes: usize) -> Content {
        Content::new("t", vec![0; bytes])
    }

    fn message(number: u8) -> MessageId {
        MessageId::from_bytes([number; 20])
    }

    #[test]
    fn a_payload_over_the_budget_is_not_held_and_costs_nothing() {
        let contents = ContentBudget::new(16 * PERMIT_BYTES);
        let large = Arc::new(content(3 * PERMIT_BYTES));
        let (first, _second) = (contents.hold(&large).expect("fits"), contents.hold(&large).expect("fits"));
        assert!(contents.hold(&large).is_none());
        drop(first);
        assert!(contents.hold(&large).is_some());
    }

    #[test]
    fn headers_of_a_message_count_as_its_payload_does() {
        let contents = ContentBudget::new(16 * PERMIT_BYTES);
        let headers = Some(Bytes::from(vec![0; 3 * PERMIT_BYTES]));
        let large = Arc::new(Content { sealed_headers: headers, ..content(1) });
        let _held = (contents.hold(&large).expect("fits"), contents.hold(&large).expect("fits"));
        assert!(contents.hold(&large).is_none());
    }

    #[tokio::test]
    async fn deliveries_of_one_message_share_one_read() {
        let (contents, reads) = (ContentBudget::new(1 << 20), AtomicUsize::new(0));
        let read = || async {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(Some(content(100)))
        };
        let first = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        let second = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(reads.load(Ordering::Relaxed), 1);
        drop((first, second));
        assert!(contents.read.lock().is_empty(), "dropped payloads are removed");
    }

    #[tokio::test]
    async fn a_payload_deleted_during_a_read_or_while_held_is_not_sent() {
        let contents = ContentBudget::new(1 << 20);
        let (answer, answered) = tokio::sync::oneshot::channel::<()>();
        let answered = std::cell::Cell::new(Some(answered));
        let late = || {
            let answered = answered.take().expect("one read");
            async {
                answered.await.expect("an answer");
                Ok(Some(content(100)))
            }
        };
        let mut reads = Box::pin(contents.load(message(1), SLOW, late));
        assert!(futures_util::poll!(&mut reads).is_pending());
        let held = contents.load(message(2), SLOW, || async { Ok(Some(content(100))) }).await;
        let held = held.expect("a read").expect("content");
        contents.forget(message(1));
        contents.forget(message(2));
        answer.send(()).expect("somebody waits");
        assert!(reads.await.expect("a read").is_none());
        assert!(held.is_deleted());
        assert!(contents.reads.lock().is_empty(), "finished reads are removed");
        // Other messages are unaffected.
        let other = contents.load(message(3), SLOW, || async { Ok(Some(content(100))) }).await;
        assert!(!other.expect("a read").expect("content").is_deleted());
    }

    #[tokio::test]
    async fn an_attempt_waits_while_sending_payloads_fill_the_budget() {
        let contents = ContentBudget::new(40 * PERMIT_BYTES);
        let read = || async { Ok(Some(content(8 * PERMIT_BYTES))) };
        let (other, responsive) = (
            ContentOwner { app: AppId::from_bytes([2; 20]), ..SLOW },
            ContentOwner { responsive: true, ..SLOW },
        );
        let first = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        let mut second = Box::pin(contents.load(message(2), other, read));
        assert!(futures_util::poll!(&mut second).is_pending(), "there is no memory for a second one");
        let responsive = contents.load(message(3), responsive, read).await.expect("a read");
        assert!(responsive.is_some(), "responsive receivers have memory of their own");
        let bytes = first.into_bytes();
        assert!(futures_util::poll!(&mut second).is_pending(), "it is still being written");
        drop(bytes);
        assert!(second.await.expect("a read").is_some());
    }

    #[tokio::test]
    async fn an_application_leaves_memory_for_the_others() {
        let contents = ContentBudget::new(80 * PERMIT_BYTES);
        let read = || async { Ok(Some(content(4 * PERMIT_BYTES))) };
        let other = ContentOwner { app: AppId::from_bytes([2; 20]), ..SLOW };
        let _held = [
            contents.load(message(1), SLOW, read).await.expect("a read"),
            contents.load(message(2), SLOW, read).await.expect("a read"),
        ];
        let mut third = Box::pin(contents.load(message(3), SLOW, read));
        assert!(futures_util::poll!(&mut third).is_pending(), "it gets no more than half");
        assert!(contents.load(message(4), other, read).await.expect("a read").is_some());
    }

    #[tokio::test]
    async fn a_slow_receiver_does_not_hold_the_payload_of_a_responsive_one() {
        let (contents, reads) = (ContentBudget::new(1 << 20), AtomicUsize::new(0));
        let read = || async {
            reads.fetch_add(1, Ordering::Relaxed);
            Ok(Some(content(100)))
        };
        let responsive = ContentOwner { responsive: true, ..SLOW };
        let first = contents.load(message(1), responsive, read).await.expect("a read").expect("content");
        let second = contents.load(message(1), SLOW, read).await.expect("a read").expect("content");
        assert!(!Arc::ptr_eq(&first, &second));
        assert_eq!(reads.load(Ordering::Relaxed), 2);
    }
}
