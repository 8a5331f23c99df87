//! The stage on which the samples are tested: each runs as a process, against a real PostgreSQL, a real mail server and a
//! real Aldaba, and is sent what a sender sends. All of it is black-box: a sample in another language needs only a
//! [`Sample`].
//!
//! The tables are in `schema.sql`.

mod aldaba;
mod backend;
mod event;
mod http;
mod mail;
mod process;
mod sample;
mod sender;
mod tables;

pub use aldaba::Aldaba;
pub use backend::{Backend, Manner};
pub use event::{Payment, fresh};
pub use http::Answer;
pub use mail::{Mailbox, SilentPort};
pub use sample::{Running, Sample, Settings, WAIT_TIMEOUT};
pub use sender::{BRAND, Delivery, Lost, SECRET, Sender, Signing, now};
pub use tables::{Order, Tables};

use std::time::Duration;

/// What should happen, happens within this time.
pub const SOON: Duration = Duration::from_secs(30);

/// Looks again and again until there is something to see.
pub async fn eventually<T, F>(what: &str, mut look: impl FnMut() -> F) -> T
where
    F: Future<Output = Option<T>>,
{
    let looking = async {
        loop {
            if let Some(seen) = look().await {
                return seen;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let seen = tokio::time::timeout(SOON, looking).await;
    seen.unwrap_or_else(|_| panic!("never seen: {what}"))
}
