//! The endpoints with their behaviours, and the events. Pure data.

use serde_json::{Value, json};
use std::time::Duration;

/// The application, by the name that the API knows it under.
pub(super) const APPLICATION: &str = "demo";

/// How an endpoint treats requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behaviour {
    Healthy,
    /// Well, but only after a while.
    Slow,
    Failing(u16),
    /// 429, with a `Retry-After` of this many seconds.
    Busy(u64),
    /// Reads the request and closes the connection without a response.
    HangsUp,
    /// Reads the request and never responds.
    Silent,
    /// Does not listen on the port.
    Down,
}

/// The shortest and the longest time that a slow endpoint takes.
pub(super) const SLOW_DELAY: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(2));

impl Behaviour {
    /// At most eleven characters, the width of the column.
    pub(super) fn words(self) -> String {
        match self {
            Self::Healthy => "well".into(),
            Self::Slow => "slow".into(),
            Self::Failing(status) => format!("answers {status}"),
            Self::Busy(_) => "answers 429".into(),
            Self::HangsUp => "hangs up".into(),
            Self::Silent => "silent".into(),
            Self::Down => "down".into(),
        }
    }

    /// For the list of recent events.
    pub(super) fn announcement(self) -> String {
        match self {
            Self::Healthy => "answers well again".into(),
            Self::Slow => "answers slowly from now on".into(),
            Self::Failing(status) => format!("answers {status} from now on"),
            Self::Busy(seconds) => format!("is busy: 429, Retry-After {seconds} s"),
            Self::HangsUp => "hangs up without an answer from now on".into(),
            Self::Silent => "takes requests and stays silent from now on".into(),
            Self::Down => "goes down: connections are refused".into(),
        }
    }
}

/// An endpoint of the demo. Each has a port of its own, as if each were another customer's host.
#[derive(Debug)]
pub(super) struct EndpointScript {
    pub(super) name: &'static str,
    pub(super) policy: &'static str,
    /// The events it wants.
    pub(super) wants: &'static [EventKind],
    /// Its behaviours and how many seconds each lasts, over and over.
    phases: &'static [(u64, Behaviour)],
}

pub(super) const ENDPOINT_COUNT: usize = 6;

pub(super) const ENDPOINTS: [EndpointScript; ENDPOINT_COUNT] = [
    EndpointScript {
        name: "shop",
        policy: "standard",
        wants: &EventKind::ALL,
        phases: &[(60, Behaviour::Healthy)],
    },
    EndpointScript {
        name: "warehouse",
        policy: "public-api",
        wants: &[EventKind::ParcelShipped],
        phases: &[(60, Behaviour::Slow)],
    },
    EndpointScript {
        name: "billing",
        policy: "standard",
        wants: &[EventKind::InvoicePaid],
        // Shorter than the policy's first pause: its second one is five minutes.
        phases: &[
            (5, Behaviour::Healthy),
            (3, Behaviour::Failing(503)),
            (17, Behaviour::Healthy),
            (3, Behaviour::Down),
            (12, Behaviour::Healthy),
        ],
    },
    EndpointScript {
        name: "mailer",
        policy: "quick",
        wants: &[EventKind::InvoicePaid, EventKind::CustomerUpdated],
        phases: &[(12, Behaviour::Healthy), (4, Behaviour::Busy(2)), (8, Behaviour::Healthy)],
    },
    EndpointScript {
        name: "partner",
        policy: "persistent",
        wants: &[EventKind::OrderCreated],
        phases: &[(8, Behaviour::Healthy), (15, Behaviour::Down), (37, Behaviour::Healthy)],
    },
    // Three attempts in three seconds: the longer of its two bad times fills the dead letter.
    EndpointScript {
        name: "legacy",
        policy: "job-status",
        wants: &[EventKind::ParcelShipped, EventKind::CustomerUpdated],
        phases: &[
            (4, Behaviour::Healthy),
            (5, Behaviour::HangsUp),
            (6, Behaviour::Healthy),
            (2, Behaviour::HangsUp),
            (6, Behaviour::Healthy),
            (3, Behaviour::Silent),
            (14, Behaviour::Healthy),
        ],
    },
];

impl EndpointScript {
    /// Its behaviour at a moment of the demo, and when that ends.
    pub(super) fn behaviour(&self, at: Duration) -> (Behaviour, Duration) {
        let round: u64 = self.phases.iter().map(|(seconds, _)| seconds).sum();
        let begun = at.as_secs() / round * round;
        let mut end = Duration::from_secs(begun);
        for (seconds, behaviour) in self.phases {
            end += Duration::from_secs(*seconds);
            if at < end {
                return (*behaviour, end);
            }
        }
        (Behaviour::Healthy, end)
    }

    /// When it next stops listening: the start of the next `Down` phase.
    pub(super) fn next_down(&self, after: Duration) -> Option<Duration> {
        let (mut behaviour, mut end) = self.behaviour(after);
        for _ in 0..=self.phases.len() {
            if behaviour != Behaviour::Down && self.behaviour(end).0 == Behaviour::Down {
                return Some(end);
            }
            (behaviour, end) = self.behaviour(end);
        }
        None
    }
}

/// The types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    OrderCreated,
    InvoicePaid,
    ParcelShipped,
    CustomerUpdated,
}

/// Of ten events in a row: four orders, three invoices, two parcels, one customer.
const MIX: [EventKind; 10] = [
    EventKind::OrderCreated,
    EventKind::InvoicePaid,
    EventKind::ParcelShipped,
    EventKind::OrderCreated,
    EventKind::CustomerUpdated,
    EventKind::InvoicePaid,
    EventKind::OrderCreated,
    EventKind::ParcelShipped,
    EventKind::InvoicePaid,
    EventKind::OrderCreated,
];

impl EventKind {
    pub(super) const ALL: [Self; 4] =
        [Self::OrderCreated, Self::InvoicePaid, Self::ParcelShipped, Self::CustomerUpdated];

    /// The kind of the event with this number.
    pub(super) fn of(number: u64) -> Self {
        MIX[usize::try_from(number % 10).unwrap_or(0)]
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::OrderCreated => "order.created",
            Self::InvoicePaid => "invoice.paid",
            Self::ParcelShipped => "parcel.shipped",
            Self::CustomerUpdated => "customer.updated",
        }
    }

    pub(super) fn wanted_by(self) -> [bool; ENDPOINT_COUNT] {
        std::array::from_fn(|lane| ENDPOINTS[lane].wants.contains(&self))
    }
}

const PRODUCTS: [(&str, u64); 4] =
    [("door knocker, brass", 4900), ("door bell", 1950), ("letter box", 7400), ("house number 7", 890)];
const PEOPLE: [&str; 4] = ["Ada", "Grace", "Edsger", "Barbara"];

/// The payload of the event with this number. The receiver tells events apart by its `id`.
pub(super) fn payload(number: u64) -> Value {
    let pick = usize::try_from(number / 3 % 4).unwrap_or(0);
    let (product, cents) = PRODUCTS[pick];
    let quantity = 1 + number % 3;
    let order = format!("ord_{}", 10_000 + number);
    let data = match EventKind::of(number) {
        EventKind::OrderCreated => json!({
            "order": order,
            "customer": { "name": PEOPLE[pick], "country": "ES" },
            "lines": [{ "product": product, "quantity": quantity, "unitPriceCents": cents }],
            "totalCents": cents * quantity,
            "currency": "EUR",
        }),
        EventKind::InvoicePaid => json!({
            "invoice": format!("inv_{}", 70_000 + number),
            "order": order,
            "amountCents": cents * quantity,
            "currency": "EUR",
            "method": "card",
        }),
        EventKind::ParcelShipped => json!({
            "order": order,
            "carrier": "Correos",
            "tracking": format!("PQ{:09}ES", number * 7919 % 1_000_000_000),
            "weightGrams": 350 * quantity,
        }),
        EventKind::CustomerUpdated => json!({
            "customer": format!("cus_{}", 400 + number % 90),
            "changed": ["email"],
            "email": format!("{}@example.com", PEOPLE[pick].to_lowercase()),
        }),
    };
    json!({ "id": event_id(number), "type": EventKind::of(number).name(), "data": data })
}

pub(super) fn event_id(number: u64) -> String {
    format!("evt_{number}")
}

/// The number of an event, from its payload.
pub(super) fn number_of(payload: &[u8]) -> Option<u64> {
    let payload: Value = serde_json::from_slice(payload).ok()?;
    payload.get("id")?.as_str()?.strip_prefix("evt_")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use aldaba_delivery::policy::BUILTIN_NAMES;
    use std::collections::BTreeSet;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn script(name: &str) -> &'static EndpointScript {
        ENDPOINTS.iter().find(|script| script.name == name).unwrap()
    }

    #[test]
    fn moods_follow_the_script_round_after_round() {
        let partner = script("partner");
        assert_eq!(partner.behaviour(secs(0)), (Behaviour::Healthy, secs(8)));
        assert_eq!(partner.behaviour(secs(8)), (Behaviour::Down, secs(23)));
        assert_eq!(partner.behaviour(Duration::from_millis(22_999)), (Behaviour::Down, secs(23)));
        assert_eq!(partner.behaviour(secs(23)), (Behaviour::Healthy, secs(60)));
        assert_eq!(partner.behaviour(secs(70)), (Behaviour::Down, secs(83)));
    }

    #[test]
    fn the_next_time_down_is_found_in_this_round_or_the_next() {
        let partner = script("partner");
        assert_eq!(partner.next_down(secs(1)), Some(secs(8)));
        assert_eq!(partner.next_down(secs(10)), Some(secs(68)));
        assert_eq!(partner.next_down(secs(30)), Some(secs(68)));
        assert_eq!(script("shop").next_down(secs(5)), None);
    }

    #[test]
    fn every_built_in_policy_has_an_endpoint_and_every_kind_of_event_a_taker() {
        let policies: BTreeSet<_> = ENDPOINTS.iter().map(|script| script.policy).collect();
        assert_eq!(policies, BTreeSet::from(BUILTIN_NAMES));
        for kind in EventKind::ALL {
            assert!(kind.wanted_by().iter().filter(|wanted| **wanted).count() >= 2, "{kind:?}");
            assert!(MIX.contains(&kind));
        }
    }

    #[test]
    fn words_fit_the_table() {
        for (_, behaviour) in ENDPOINTS.iter().flat_map(|script| script.phases) {
            assert!(behaviour.words().len() <= 11, "{behaviour:?}");
        }
    }

    #[test]
    fn an_event_is_known_again_by_its_payload() {
        for number in 0..20 {
            let bytes = payload(number).to_string();
            assert_eq!(number_of(bytes.as_bytes()), Some(number));
        }
        assert_eq!(number_of(b"{\"id\": \"mine\"}"), None);
        assert_eq!(number_of(b"no JSON"), None);
    }
}
