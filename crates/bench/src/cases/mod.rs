//! The cases, one file each.

mod backlog;
mod beside;
mod black_holes;
mod fairness;
mod fan_out;
mod history;
mod interim_flood;
mod many_endpoints;
mod overload;
mod saturation;
mod shared_origin;
mod silent_dns;
mod slow_neighbours;
mod throttle;

use crate::Result;
use crate::report::Report;
use crate::suite::Suite;

#[derive(Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// What it asks.
    asks: &'static str,
    pub(crate) run: fn(&Suite) -> Result<Report>,
}

pub(crate) const ALL: &[Case] = &[
    Case {
        name: saturation::NAME,
        asks: "how much of the machine's own limit is delivered",
        run: saturation::run,
    },
    Case {
        name: fan_out::NAME,
        asks: "the same of messages to fifty endpoints of one host each",
        run: fan_out::run,
    },
    Case {
        name: shared_origin::NAME,
        asks: "what 200 silent endpoints do to fifty good ones of the same host",
        run: shared_origin::run,
    },
    Case {
        name: black_holes::NAME,
        asks: "what 40,000 silent endpoints do to ten good ones",
        run: black_holes::run,
    },
    Case { name: silent_dns::NAME, asks: "the same of a name server that is silent", run: silent_dns::run },
    Case {
        name: slow_neighbours::NAME,
        asks: "the same of slow endpoints beside",
        run: slow_neighbours::run,
    },
    Case {
        name: interim_flood::NAME,
        asks: "the same of endpoints that answer 1xx without end",
        run: interim_flood::run,
    },
    Case { name: backlog::NAME, asks: "what a million waiting deliveries cost", run: backlog::run },
    Case { name: many_endpoints::NAME, asks: "the memory for 100,000 endpoints", run: many_endpoints::run },
    Case { name: throttle::NAME, asks: "whether a throttled endpoint gets its rate", run: throttle::run },
    Case { name: overload::NAME, asks: "what twice the capacity does", run: overload::run },
    Case {
        name: history::NAME,
        asks: "how long lists and statistics of a million attempts take",
        run: history::run,
    },
    Case { name: fairness::NAME, asks: "whether all endpoints wait equally long", run: fairness::run },
];

pub(crate) fn named(name: &str) -> std::result::Result<&'static Case, String> {
    let found = ALL.iter().find(|case| case.name == name);
    found.ok_or_else(|| format!("there is no such case\n\n{}", list()))
}

pub(crate) fn list() -> String {
    let lines: Vec<_> = ALL.iter().map(|case| format!("  {:<17}{}", case.name, case.asks)).collect();
    format!("Cases:\n{}", lines.join("\n"))
}
