use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

/// Decides which addresses may be contacted, for every path that sends. `target.rs` applies it to URLs.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Networks that the operator allows in addition.
    allowed: Arc<[IpNet]>,
}

impl Guard {
    pub fn new(allow: Vec<IpNet>) -> Self {
        Self { allowed: allow.into() }
    }

    pub fn allows(&self, address: IpAddr) -> bool {
        let reached = reached(address);
        !forbidden(reached) || self.allowed.iter().any(|net| net.contains(&reached) || net.contains(&address))
    }
}

/// The effective destination: some IPv6 addresses embed an IPv4 address.
pub(super) fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) if NAT64.contains(&v6) => {
            let [.., a, b, c, d] = v6.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        canonical => canonical,
    }
}

fn forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => V4_FORBIDDEN.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => !V6_GLOBAL.contains(&v6) || V6_FORBIDDEN.iter().any(|net| net.contains(&v6)),
    }
}

const V4_FORBIDDEN: [Ipv4Net; 16] = [
    v4([0, 0, 0, 0], 8),        // "this" network
    v4([10, 0, 0, 0], 8),       // private
    v4([100, 64, 0, 0], 10),    // shared by carriers, and metadata services of some clouds
    v4([127, 0, 0, 0], 8),      // loopback
    v4([168, 63, 129, 16], 32), // Azure's host agent
    v4([169, 254, 0, 0], 16),   // link-local, and metadata services of most clouds
    v4([172, 16, 0, 0], 12),    // private
    v4([192, 0, 0, 0], 24),     // protocol assignments
    v4([192, 0, 2, 0], 24),     // documentation
    v4([192, 88, 99, 0], 24),   // 6to4 relays
    v4([192, 168, 0, 0], 16),   // private
    v4([198, 18, 0, 0], 15),    // benchmarks
    v4([198, 51, 100, 0], 24),  // documentation
    v4([203, 0, 113, 0], 24),   // documentation
    v4([224, 0, 0, 0], 4),      // multicast
    v4([240, 0, 0, 0], 4),      // reserved, and broadcast
];

/// Only this eighth of IPv6 is assigned as global unicast. Everything outside is forbidden: loopback,
/// mapped, compatible and SIIT forms, `64:ff9b:1::/48`, `100::/64`, `5f00::/16`, unique local, link-local,
/// site-local and multicast addresses, and future assignments.
const V6_GLOBAL: Ipv6Net = v6([0x2000, 0, 0], 3);

/// Special-purpose ranges inside it.
const V6_FORBIDDEN: [Ipv6Net; 4] = [
    v6([0x2001, 0, 0], 23),      // protocol assignments: Teredo, ORCHID, benchmarks
    v6([0x2001, 0x0db8, 0], 32), // documentation
    v6([0x2002, 0, 0], 16),      // 6to4: carries any IPv4 address
    v6([0x3fff, 0, 0], 20),      // documentation
];

const NAT64: Ipv6Net = v6([0x64, 0xff9b, 0], 96);

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c]: [u16; 3], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}
