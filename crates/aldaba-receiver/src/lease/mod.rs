//! Ledgers that mark an event separately from its work: at least once, with deduplication.

mod claim;
mod digest;
mod expired;
mod key_value;
mod memory;
mod owned;
#[cfg(feature = "redis")]
mod redis;
mod stored_lease;
mod times;

pub(crate) use expired::LEASES_EXPIRED;
pub use key_value::{
    Atomicity, KeyValueLeases, KeyValueOptions, KeyValueStore, NotAtomic, PlainStore, PutIfAbsentOnly,
    PutIfAbsentStore,
};
pub use memory::{MemoryLease, MemoryLeases};
pub use owned::OwnedLease;
#[cfg(feature = "redis")]
pub use redis::{RedisLeases, RedisOptions};
pub use times::{LONGEST_PREFIX, LeaseOptionError, LeaseTimes};
