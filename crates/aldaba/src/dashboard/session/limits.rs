//! Limits how often credentials can be tried: for each address, and overall.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

/// The time over which attempts are counted.
const WINDOW: Duration = Duration::from_secs(60);
const MAX_OF_ADDRESS: u32 = 10;
const MAX_OF_ALL: u32 = 300;
/// Addresses that are remembered. Beyond it those without recent attempts are forgotten, then all.
const MAX_ADDRESSES: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct LoginLimits(Mutex<CountedAttempts>);

#[derive(Debug, Default)]
struct CountedAttempts {
    all: AttemptWindow,
    addresses: HashMap<IpAddr, AttemptWindow>,
}

#[derive(Clone, Copy, Debug, Default)]
struct AttemptWindow {
    since: Duration,
    times: u32,
}

impl AttemptWindow {
    fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.since) >= WINDOW
    }

    /// The time until the next attempt, if there were enough.
    fn wait(&self, now: Duration, most: u32) -> Option<Duration> {
        (self.times >= most && !self.is_over(now)).then(|| WINDOW.saturating_sub(now - self.since))
    }

    fn count(&mut self, now: Duration) {
        if self.is_over(now) || self.times == 0 {
            *self = Self { since: now, times: 0 };
        }
        self.times += 1;
    }
}

impl LoginLimits {
    /// Counts an attempt, or says how long to wait. Attempts from an unknown address count as from one.
    pub(crate) fn admit(&self, address: Option<IpAddr>, now: Duration) -> Result<(), Duration> {
        let address = network(address.unwrap_or(IpAddr::from([0, 0, 0, 0])));
        let attempts = &mut *self.0.lock();
        let of_address = attempts.addresses.get(&address).and_then(|window| window.wait(now, MAX_OF_ADDRESS));
        if let Some(wait) = of_address.or_else(|| attempts.all.wait(now, MAX_OF_ALL)) {
            return Err(wait);
        }
        if attempts.addresses.len() >= MAX_ADDRESSES && !attempts.addresses.contains_key(&address) {
            attempts.addresses.retain(|_, window| !window.is_over(now));
            if attempts.addresses.len() >= MAX_ADDRESSES {
                attempts.addresses.clear();
            }
        }
        attempts.all.count(now);
        attempts.addresses.entry(address).or_default().count(now);
        Ok(())
    }

    /// Somebody has logged in: earlier mistakes count no more.
    pub(crate) fn forget(&self, address: Option<IpAddr>) {
        if let Some(address) = address {
            self.0.lock().addresses.remove(&network(address));
        }
    }
}

/// A client with one IPv6 address has its whole network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => IpAddr::from((u128::from(address) >> 64 << 64).to_be_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(last: u8) -> Option<IpAddr> {
        Some(IpAddr::from([192, 0, 2, last]))
    }

    #[test]
    fn an_address_that_tries_often_waits_and_others_do_not() {
        let (limits, begun) = (LoginLimits::default(), Duration::from_secs(1000));
        for _ in 0..MAX_OF_ADDRESS {
            limits.admit(address(1), begun).unwrap();
        }
        assert_eq!(limits.admit(address(1), begun + Duration::from_secs(20)), Err(Duration::from_secs(40)));
        limits.admit(address(2), begun).unwrap();
        limits.admit(address(1), begun + WINDOW).unwrap();
    }

    #[test]
    fn many_addresses_together_wait_too() {
        let (limits, now) = (LoginLimits::default(), Duration::from_secs(1000));
        let admitted = (0..=255_u8).chain(0..=255).filter(|last| limits.admit(address(*last), now).is_ok());
        assert_eq!(admitted.count() as u32, MAX_OF_ALL);
    }

    #[test]
    fn a_success_makes_up_for_mistakes_and_a_network_is_one_address() {
        let (limits, now) = (LoginLimits::default(), Duration::from_secs(1000));
        for host in 0..MAX_OF_ADDRESS {
            limits.admit(Some(format!("2001:db8::{host}").parse().unwrap()), now).unwrap();
        }
        let other: Option<IpAddr> = Some("2001:db8::ffff".parse().unwrap());
        assert!(limits.admit(other, now).is_err());
        limits.forget(other);
        limits.admit(other, now).unwrap();
    }
}
