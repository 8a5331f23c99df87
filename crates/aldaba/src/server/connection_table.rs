//! Connections without a first request, and the number of connections of each address.
//!
//! A connection that never finishes the head of a request costs its sender nothing. So such connections give way
//! first, the oldest before the others, and each address has a limit for connections of any kind.

use parking_lot::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How long a connection may take for its first head before it gives way to another that has sent none either. Honest
/// clients take milliseconds. To a connection that has sent a whole head it gives way at once.
const HEAD_GRACE_PERIOD: Duration = Duration::from_millis(250);

/// All connections by address, and those that still owe their first head.
#[derive(Debug)]
pub(super) struct ConnectionTable {
    /// Connections of one address; 0: any number.
    per_address: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    /// Connections with a slot and without a head, the oldest first.
    waiting: BTreeMap<u64, Waiting>,
    /// New connections that wait for a slot and found none that gives way.
    wanted: usize,
    addresses: HashMap<Address, OfAddress>,
    /// Requests in progress of clients behind trusted proxies.
    proxied: HashMap<Address, usize>,
}

#[derive(Debug)]
struct Waiting {
    address: Address,
    leave: Arc<Notify>,
    grace_is_over: bool,
}

#[derive(Debug, Default)]
struct OfAddress {
    connections: usize,
    waiting: BTreeSet<u64>,
    /// The log has said that connections are refused.
    warned: bool,
}

/// The key under which an address is counted: an IPv6 network gives whole /64 blocks to one customer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Address(IpAddr);

impl Address {
    fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V6(v6) => Self(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into()),
            v4 @ IpAddr::V4(_) => Self(v4),
        }
    }
}

/// The address has reached its limit of connections.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooManyConnections;

/// The connection that asks others to give way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Newcomer {
    /// It has sent a whole head.
    HeadReceived,
    /// It has not, as far as is known.
    HeadUnknown,
}

/// A request in progress of a proxy's client; dropping it ends it.
#[derive(Debug)]
pub(super) struct TrackedRequest {
    table: Arc<ConnectionTable>,
    client: Address,
}

impl Drop for TrackedRequest {
    fn drop(&mut self) {
        let mut table = self.table.table.lock();
        if let Some(requests) = table.proxied.get_mut(&self.client) {
            *requests -= 1;
            if *requests == 0 {
                table.proxied.remove(&self.client);
            }
        }
    }
}

/// An open connection; dropping it forgets it.
#[derive(Debug)]
pub(super) struct TrackedConnection {
    table: Arc<ConnectionTable>,
    address: Address,
    leave: Arc<Notify>,
    state: Mutex<ConnectionState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionState {
    /// Without a slot.
    PendingConnection,
    /// With a slot; its first head has not arrived.
    Waiting(u64),
    /// Its first head has arrived.
    Known,
}

impl ConnectionTable {
    pub(super) fn new(per_address: usize) -> Arc<Self> {
        Arc::new(Self { per_address, table: Mutex::default() })
    }

    /// Counts a connection. At the limit of its address the oldest connection of the address without a head gives
    /// way; if there is none, the new one is refused. A proxy has no limit: its clients have one.
    pub(super) fn register(
        self: &Arc<Self>,
        address: IpAddr,
        is_proxy: bool,
    ) -> Result<TrackedConnection, TooManyConnections> {
        let address = Address::of(address);
        let mut table = self.table.lock();
        let of_address = table.addresses.entry(address).or_default();
        if self.per_address > 0 && of_address.connections >= self.per_address && !is_proxy {
            if !std::mem::replace(&mut of_address.warned, true) {
                tracing::warn!(
                    address = %address.0,
                    connections_per_address = self.per_address,
                    "an address has too many connections: some get a 503. Is it a proxy? Then name it in trusted_proxies"
                );
            }
            let oldest = of_address.waiting.first().copied();
            oldest.and_then(|number| table.evict(number, Newcomer::HeadUnknown)).ok_or(TooManyConnections)?;
        }
        table.addresses.entry(address).or_default().connections += 1;
        drop(table);
        let (table, leave) = (self.clone(), Arc::new(Notify::new()));
        Ok(TrackedConnection { table, address, leave, state: Mutex::new(ConnectionState::PendingConnection) })
    }

    /// Counts a request of a proxy's client, in place of the connection that the client would have without the proxy.
    pub(super) fn register_request(
        self: &Arc<Self>,
        client: IpAddr,
    ) -> Result<TrackedRequest, TooManyConnections> {
        let client = Address::of(client);
        let mut table = self.table.lock();
        let requests = table.proxied.entry(client).or_default();
        if self.per_address > 0 && *requests >= self.per_address {
            return Err(TooManyConnections);
        }
        *requests += 1;
        Ok(TrackedRequest { table: self.clone(), client })
    }

    /// Asks the oldest connection without a head to leave; `false`: none has to.
    pub(super) fn evict_oldest(&self, newcomer: Newcomer) -> bool {
        let mut table = self.table.lock();
        let oldest = table.waiting.first_key_value().map(|(number, _)| *number);
        oldest.and_then(|number| table.evict(number, newcomer)).is_some()
    }

    /// The next connection whose grace period ends has to leave, until [`cancel_eviction`](Self::cancel_eviction).
    pub(super) fn reserve_next_eviction(&self) {
        self.table.lock().wanted += 1;
    }

    /// The new connection no longer waits.
    pub(super) fn cancel_eviction(&self) {
        let mut table = self.table.lock();
        table.wanted = table.wanted.saturating_sub(1);
    }
}

impl Table {
    fn evict(&mut self, number: u64, newcomer: Newcomer) -> Option<()> {
        let has_to = |waiting: &&Waiting| waiting.grace_is_over || newcomer == Newcomer::HeadReceived;
        self.waiting.get(&number).filter(has_to)?;
        self.forget(number)?.leave.notify_one();
        Some(())
    }

    fn forget(&mut self, number: u64) -> Option<Waiting> {
        let waiting = self.waiting.remove(&number)?;
        if let Some(of_address) = self.addresses.get_mut(&waiting.address) {
            of_address.waiting.remove(&number);
        }
        Some(waiting)
    }
}

impl TrackedConnection {
    /// The connection has a slot from now on.
    pub(super) fn slot_acquired(&self) {
        let mut table = self.table.table.lock();
        let number = table.next;
        table.next += 1;
        let waiting = Waiting { address: self.address, leave: self.leave.clone(), grace_is_over: false };
        table.waiting.insert(number, waiting);
        table.addresses.entry(self.address).or_default().waiting.insert(number);
        *self.state.lock() = ConnectionState::Waiting(number);
    }

    /// Its head has arrived: from here on it gives way like all others.
    pub(super) fn head_received(&self) {
        let before = std::mem::replace(&mut *self.state.lock(), ConnectionState::Known);
        if let ConnectionState::Waiting(number) = before {
            self.table.table.lock().forget(number);
        }
    }

    pub(super) fn has_sent_head(&self) -> bool {
        *self.state.lock() == ConnectionState::Known
    }

    /// Resolves when it has to leave for another; never once its head has arrived.
    pub(super) async fn evicted(&self) {
        tokio::select! {
            biased;
            () = self.leave.notified() => return,
            () = tokio::time::sleep(HEAD_GRACE_PERIOD) => {}
        }
        if !self.grace_is_over() {
            self.leave.notified().await;
        }
    }

    /// `true`: another connection already waits for the slot.
    fn grace_is_over(&self) -> bool {
        let ConnectionState::Waiting(number) = *self.state.lock() else { return false };
        let mut table = self.table.table.lock();
        if table.wanted > 0 && table.forget(number).is_some() {
            table.wanted -= 1;
            return true;
        }
        if let Some(waiting) = table.waiting.get_mut(&number) {
            waiting.grace_is_over = true;
        }
        false
    }
}

impl Drop for TrackedConnection {
    fn drop(&mut self) {
        let mut table = self.table.table.lock();
        if let ConnectionState::Waiting(number) = *self.state.get_mut() {
            table.forget(number);
        }
        if let Some(of_address) = table.addresses.get_mut(&self.address) {
            of_address.connections -= 1;
            if of_address.connections == 0 {
                table.addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn leaves(tracked: &TrackedConnection) -> bool {
        tracked.leave.notified().now_or_never().is_some()
    }

    fn with_a_slot(table: &Arc<ConnectionTable>, last: u8) -> TrackedConnection {
        let tracked = table.register(address(last), false).unwrap();
        tracked.slot_acquired();
        tracked
    }

    #[test]
    fn the_oldest_without_a_head_gives_way_first_and_none_that_has_sent_one() {
        let table = ConnectionTable::new(0);
        let connections: Vec<_> = (0..4).map(|number| with_a_slot(&table, number)).collect();
        let pending = table.register(address(9), false).unwrap();
        assert!(!table.evict_oldest(Newcomer::HeadUnknown), "all are in their grace");
        connections.iter().for_each(|tracked| assert!(!tracked.grace_is_over()));
        connections[0].head_received();
        assert!(table.evict_oldest(Newcomer::HeadUnknown));
        assert_eq!([0, 1, 2, 3].map(|number| leaves(&connections[number])), [false, true, false, false]);
        assert!(table.evict_oldest(Newcomer::HeadUnknown) && leaves(&connections[2]));
        connections[3].head_received();
        assert!(!table.evict_oldest(Newcomer::HeadReceived));
        assert!(!leaves(&pending), "it has no slot to give");
    }

    #[test]
    fn a_connection_with_a_head_does_not_wait_for_a_grace_period() {
        let table = ConnectionTable::new(0);
        let (first, second) = (with_a_slot(&table, 1), with_a_slot(&table, 1));
        assert!(!table.evict_oldest(Newcomer::HeadUnknown));
        assert!(table.evict_oldest(Newcomer::HeadReceived));
        assert!(leaves(&first) && !leaves(&second));
    }

    #[test]
    fn a_waiting_connection_gets_the_slot_of_the_next_whose_grace_period_ends() {
        let table = ConnectionTable::new(0);
        let (first, second) = (with_a_slot(&table, 1), with_a_slot(&table, 1));
        table.reserve_next_eviction();
        assert!(first.grace_is_over());
        assert!(!second.grace_is_over(), "one slot was wanted");
    }

    #[test]
    fn an_address_has_no_more_connections_than_it_may() {
        let table = ConnectionTable::new(2);
        let known = with_a_slot(&table, 1);
        known.head_received();
        let late = with_a_slot(&table, 1);
        assert_eq!(table.register(address(1), false).err(), Some(TooManyConnections));
        let other = with_a_slot(&table, 2);
        assert!(!late.grace_is_over() && !other.grace_is_over());
        let _third = table.register(address(1), false).unwrap();
        assert!(leaves(&late) && !leaves(&known) && !leaves(&other), "its own oldest gives way");
        drop(late);
        assert_eq!(table.register(address(1), false).err(), Some(TooManyConnections));
        drop(known);
        table.register(address(1), false).unwrap();
    }

    #[test]
    fn a_proxy_may_have_any_number_and_each_of_its_clients_has_the_limit() {
        let table = ConnectionTable::new(2);
        let _connections: Vec<_> = (0..5).map(|_| table.register(address(1), true).unwrap()).collect();
        let requests = [(); 2].map(|()| table.register_request(address(7)).unwrap());
        assert_eq!(table.register_request(address(7)).err(), Some(TooManyConnections));
        table.register_request(address(8)).unwrap();
        drop(requests);
        table.register_request(address(7)).unwrap();
        assert!(table.table.lock().proxied.is_empty(), "nothing is remembered of who has gone");
    }

    #[test]
    fn a_block_of_ipv6_is_one_address_and_a_mapped_one_is_that_of_ipv4() {
        let of = |text: &str| Address::of(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }

    #[test]
    fn nothing_is_remembered_of_who_has_gone() {
        let table = ConnectionTable::new(0);
        for number in 0..3 {
            let (late, known) = (with_a_slot(&table, number), with_a_slot(&table, number));
            late.grace_is_over();
            known.grace_is_over();
            known.head_received();
        }
        let table = table.table.lock();
        assert!(table.waiting.is_empty() && table.addresses.is_empty());
    }
}
