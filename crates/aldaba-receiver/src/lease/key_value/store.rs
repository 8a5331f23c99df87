use std::error::Error;
use std::future::Future;
use std::time::Duration;

/// Which operations of a store are atomic. The guarantee is always at least once; less atomicity means more duplicate
/// effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Atomicity {
    /// All operations: an event has its effect twice only after a crash or an expired lease.
    CompareAndSwap,
    /// Only the first write. Concurrent copies are recognized, but an owner whose lease expires while it completes may
    /// overwrite the next owner's record.
    PutIfAbsent,
    /// No operation. Concurrent copies may both be handled. In an eventually consistent store, such as an edge store, copies
    /// count as concurrent for as long as the replication takes.
    None,
}

/// A key-value store with atomic conditional writes and expiry.
///
/// Most stores have these operations: conditional writes, transactions, `add` and `cas`, revisions. A store without them can
/// be used through [`NotAtomic`].
///
/// ```
/// use aldaba_receiver::lease::{Atomicity, KeyValueLeases, KeyValueOptions, KeyValueStore};
/// use std::collections::HashMap;
/// use std::convert::Infallible;
/// use std::sync::Mutex;
/// use std::time::{Duration, Instant};
///
/// /// Values with their expiry.
/// #[derive(Default)]
/// struct Shelf(Mutex<HashMap<String, (String, Instant)>>);
///
/// impl Shelf {
///     /// Puts a value if `may` accepts the current one.
///     fn put(&self, key: &str, new: &str, life: Duration, may: impl Fn(Option<&str>) -> bool) -> bool {
///         let mut values = self.0.lock().unwrap();
///         values.retain(|_, (_, end)| *end > Instant::now());
///         if !may(values.get(key).map(|(value, _)| value.as_str())) {
///             return false;
///         }
///         values.insert(key.into(), (new.into(), Instant::now() + life));
///         true
///     }
/// }
///
/// impl KeyValueStore for Shelf {
///     type Error = Infallible;
///     const ATOMICITY: Atomicity = Atomicity::CompareAndSwap;
///
///     async fn get(&self, key: &str) -> Result<Option<String>, Infallible> {
///         let values = self.0.lock().unwrap();
///         Ok(values.get(key).filter(|(_, end)| *end > Instant::now()).map(|(value, _)| value.clone()))
///     }
///
///     async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, Infallible> {
///         Ok(self.put(key, value, life, |there| there.is_none()))
///     }
///
///     async fn replace_if(
///         &self,
///         key: &str,
///         old: &str,
///         new: &str,
///         life: Duration,
///     ) -> Result<bool, Infallible> {
///         Ok(self.put(key, new, life, |there| there == Some(old)))
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ledger = KeyValueLeases::new(Shelf::default(), KeyValueOptions::default()).unwrap();
/// # });
/// ```
pub trait KeyValueStore: Send + Sync + 'static {
    /// The error of a failed operation.
    type Error: Error + Send + Sync + 'static;

    /// Which of the operations below are atomic.
    const ATOMICITY: Atomicity;

    /// Reads a value; `None` if it is missing or expired.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send;

    /// Puts a value for `life` if there is none. Returns whether it did.
    fn put_if_absent(
        &self,
        key: &str,
        value: &str,
        life: Duration,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Replaces `old` with `new` for `life` from now, if `old` is the current value. Returns whether it did. Both may be the
    /// same: then only the expiry changes.
    fn replace_if(
        &self,
        key: &str,
        old: &str,
        new: &str,
        life: Duration,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// A store with plain reads and writes, such as an edge store.
pub trait PlainStore: Send + Sync + 'static {
    /// The error of a failed operation.
    type Error: Error + Send + Sync + 'static;

    /// Reads a value; `None` if there is none.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send;

    /// Puts a value for `life`, replacing any other.
    fn put(
        &self,
        key: &str,
        value: &str,
        life: Duration,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A store that can put a value atomically if there is none, but has no compare-and-swap.
pub trait PutIfAbsentStore: PlainStore {
    /// Puts a value for `life` if there is none, in one step. `false`: there is one, and it stays.
    fn put_if_absent(
        &self,
        key: &str,
        value: &str,
        life: Duration,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// Leases in a [`PlainStore`], by a read and then a write. **This is not atomic**: concurrent copies of an event may each be
/// handled. It suffices for a sender that repeats only unanswered requests.
#[derive(Clone, Debug)]
pub struct NotAtomic<S>(pub S);

impl<S: PlainStore> KeyValueStore for NotAtomic<S> {
    type Error = S::Error;

    const ATOMICITY: Atomicity = Atomicity::None;

    async fn get(&self, key: &str) -> Result<Option<String>, S::Error> {
        self.0.get(key).await
    }

    async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, S::Error> {
        put_where(&self.0, key, None, value, life).await
    }

    async fn replace_if(&self, key: &str, old: &str, new: &str, life: Duration) -> Result<bool, S::Error> {
        put_where(&self.0, key, Some(old), new, life).await
    }
}

/// Leases in a [`PutIfAbsentStore`]. Concurrent copies are recognized, but an owner's later changes are a read and then a
/// write.
#[derive(Clone, Debug)]
pub struct PutIfAbsentOnly<S>(pub S);

impl<S: PutIfAbsentStore> KeyValueStore for PutIfAbsentOnly<S> {
    type Error = S::Error;

    const ATOMICITY: Atomicity = Atomicity::PutIfAbsent;

    async fn get(&self, key: &str) -> Result<Option<String>, S::Error> {
        self.0.get(key).await
    }

    async fn put_if_absent(&self, key: &str, value: &str, life: Duration) -> Result<bool, S::Error> {
        self.0.put_if_absent(key, value, life).await
    }

    async fn replace_if(&self, key: &str, old: &str, new: &str, life: Duration) -> Result<bool, S::Error> {
        put_where(&self.0, key, Some(old), new, life).await
    }
}

async fn put_where<S: PlainStore>(
    store: &S,
    key: &str,
    expected: Option<&str>,
    value: &str,
    life: Duration,
) -> Result<bool, S::Error> {
    if store.get(key).await?.as_deref() != expected {
        return Ok(false);
    }
    store.put(key, value, life).await?;
    Ok(true)
}
