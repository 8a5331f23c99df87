use std::error::Error;
use std::future::Future;
use std::time::Duration;

/// Which steps of a store nobody gets in between. The guarantee is the same with each, at least once; the less there
/// is, the more events have their effect again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Atomicity {
    /// All of them: an event has its effect again only after a crash or an expired lease.
    CompareAndSwap,
    /// Only the first of them. Copies that come at the same moment are told apart, but an owner whose lease expires
    /// just while it completes may overwrite what the next owner has written.
    PutIfAbsent,
    /// None. Two copies that come at the same moment may both be handled, and where a store shows one place late what
    /// another has written, as those at the edge of a network do, that moment lasts as long as the delay.
    None,
}

/// A store of short texts under keys, whose steps nobody gets in between, and which forgets what has lived its life.
///
/// Most stores have these steps under names of their own: conditional writes, transactions, `add` and `cas`, revisions
/// to compare. A store that has none of them can be used through [`NotAtomic`].
///
/// ```
/// use aldaba_receiver::lease::{Atomicity, KeyValueLeases, KeyValueOptions, KeyValueStore};
/// use std::collections::HashMap;
/// use std::convert::Infallible;
/// use std::sync::Mutex;
/// use std::time::{Duration, Instant};
///
/// /// Values with the moment at which they are forgotten.
/// #[derive(Default)]
/// struct Shelf(Mutex<HashMap<String, (String, Instant)>>);
///
/// impl Shelf {
///     /// Puts a value where `may` holds of what is there.
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
    /// Why the store did not do what it was asked.
    type Error: Error + Send + Sync + 'static;

    /// What the steps below are worth.
    const ATOMICITY: Atomicity;

    /// What is there; `None` also where it has lived its life.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send;

    /// Puts a value where there is none, for as long as `life`, and says whether it did.
    fn put_if_absent(
        &self,
        key: &str,
        value: &str,
        life: Duration,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;

    /// Puts `new` where `old` is, for as long as `life` from now, and says whether it did. The two may be the same: then
    /// only the life changes.
    fn replace_if(
        &self,
        key: &str,
        old: &str,
        new: &str,
        life: Duration,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// A store that can only read and write, such as a key-value store at the edge of a network.
pub trait PlainStore: Send + Sync + 'static {
    /// Why the store did not do what it was asked.
    type Error: Error + Send + Sync + 'static;

    /// Reads a value; `None` where there is none.
    fn get(&self, key: &str) -> impl Future<Output = Result<Option<String>, Self::Error>> + Send;

    /// Puts a value, whatever was there, for as long as `life`.
    fn put(
        &self,
        key: &str,
        value: &str,
        life: Duration,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A store that can read, write, and put a value where there is none in one step; but not compare and swap.
pub trait PutIfAbsentStore: PlainStore {
    /// Puts a value for `life` where there is none, in one step. `false`: there was one, and it stays.
    fn put_if_absent(
        &self,
        key: &str,
        value: &str,
        life: Duration,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}

/// Leases in a [`PlainStore`], by looking first and writing then. **Others get in between**: copies of an event that
/// come at the same moment may each be handled. It is enough for a sender who repeats what was not answered; not for
/// one whose copies come side by side.
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

/// Leases in a [`PutIfAbsentStore`]: copies that come at the same moment are told apart, but what an owner does to its
/// lease later is done by looking first and writing then.
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
