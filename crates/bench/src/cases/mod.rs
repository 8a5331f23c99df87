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
    /// The question that the case answers.
    asks: &'static str,
    pub(crate) run: fn(&Suite) -> Result<Report>,
}

pub(crate) const ALL: &[Case] = &[
    Case {
        name: saturation::NAME,
        asks: "throughput to one endpoint, as a share of the machine's own limit",
        run: saturation::run,
    },
    Case {
        name: fan_out::NAME,
        asks: "the same for messages to fifty endpoints of one host",
        run: fan_out::run,
    },
    Case {
        name: shared_origin::NAME,
        asks: "the effect of 200 silent endpoints on fifty healthy ones of the same host",
        run: shared_origin::run,
    },
    Case {
        name: black_holes::NAME,
        asks: "the effect of 40,000 silent endpoints on ten healthy ones",
        run: black_holes::run,
    },
    Case { name: silent_dns::NAME, asks: "the effect of a silent name server", run: silent_dns::run },
    Case {
        name: slow_neighbours::NAME,
        asks: "the effect of slow endpoints of the same application",
        run: slow_neighbours::run,
    },
    Case {
        name: interim_flood::NAME,
        asks: "the effect of endpoints that answer 1xx endlessly",
        run: interim_flood::run,
    },
    Case {
        name: backlog::NAME,
        asks: "the memory and restart with a million pending deliveries",
        run: backlog::run,
    },
    Case { name: many_endpoints::NAME, asks: "the memory of 100,000 endpoints", run: many_endpoints::run },
    Case {
        name: throttle::NAME,
        asks: "whether a throttled endpoint gets exactly its rate",
        run: throttle::run,
    },
    Case { name: overload::NAME, asks: "behaviour at twice the capacity, and recovery", run: overload::run },
    Case {
        name: history::NAME,
        asks: "the duration of lists and statistics of a million attempts",
        run: history::run,
    },
    Case { name: fairness::NAME, asks: "whether all endpoints wait equally long", run: fairness::run },
];

pub(crate) fn named(name: &str) -> std::result::Result<&'static Case, String> {
    let found = ALL.iter().find(|case| case.name == name);
    found.ok_or_else(|| format!("unknown case\n\n{}", list()))
}

pub(crate) fn list() -> String {
    let lines: Vec<_> = ALL.iter().map(|case| format!("  {:<17}{}", case.name, case.asks)).collect();
    format!("Cases:\n{}", lines.join("\n"))
}
