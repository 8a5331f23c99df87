//! Who takes part: the endpoints with their moods, and the events. Nothing here waits or speaks.

use serde_json::{Value, json};
use std::time::Duration;

/// The application, by the name that the API knows it under.
pub(super) const APPLICATION: &str = "demo";

/// How an endpoint treats whoever knocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Well,
    /// Well, but only after a while.
    Slow,
    Errs(u16),
    /// 429, with a `Retry-After` of so many seconds.
    Busy(u64),
    /// Takes the request and closes the connection without a word.
    Closes,
    /// Takes the request and never answers.
    Silent,
    /// Nobody listens on the port.
    Down,
}

/// The shortest and the longest time that a slow endpoint takes.
pub(super) const SLOW: (Duration, Duration) = (Duration::from_millis(300), Duration::from_secs(2));

impl Mood {
    /// At most eleven characters, which is the room that the table has.
    pub(super) fn words(self) -> String {
        match self {
            Self::Well => "well".into(),
            Self::Slow => "slow".into(),
            Self::Errs(status) => format!("answers {status}"),
            Self::Busy(_) => "answers 429".into(),
            Self::Closes => "hangs up".into(),
            Self::Silent => "silent".into(),
            Self::Down => "down".into(),
        }
    }

    /// As a piece of news.
    pub(super) fn announcement(self) -> String {
        match self {
            Self::Well => "answers well again".into(),
            Self::Slow => "answers slowly from now on".into(),
            Self::Errs(status) => format!("answers {status} from now on"),
            Self::Busy(seconds) => format!("is busy: 429, Retry-After {seconds} s"),
            Self::Closes => "hangs up without an answer from now on".into(),
            Self::Silent => "takes requests and stays silent from now on".into(),
            Self::Down => "goes down: connections are refused".into(),
        }
    }
}

/// An endpoint of the demo. Each has a port of its own, as if each were another customer's host.
#[derive(Debug)]
pub(super) struct Actor {
    pub(super) name: &'static str,
    pub(super) policy: &'static str,
    /// The events it wants.
    pub(super) wants: &'static [Kind],
    /// Its moods and how many seconds each lasts, over and over.
    script: &'static [(u64, Mood)],
}

pub(super) const LANES: usize = 6;

pub(super) const CAST: [Actor; LANES] = [
    Actor { name: "shop", policy: "standard", wants: &Kind::ALL, script: &[(60, Mood::Well)] },
    Actor {
        name: "warehouse",
        policy: "public-api",
        wants: &[Kind::ParcelShipped],
        script: &[(60, Mood::Slow)],
    },
    Actor {
        name: "billing",
        policy: "standard",
        wants: &[Kind::InvoicePaid],
        // Shorter than the policy's first pause: its second one is five minutes.
        script: &[(5, Mood::Well), (3, Mood::Errs(503)), (17, Mood::Well), (3, Mood::Down), (12, Mood::Well)],
    },
    Actor {
        name: "mailer",
        policy: "quick",
        wants: &[Kind::InvoicePaid, Kind::CustomerUpdated],
        script: &[(12, Mood::Well), (4, Mood::Busy(2)), (8, Mood::Well)],
    },
    Actor {
        name: "partner",
        policy: "persistent",
        wants: &[Kind::OrderCreated],
        script: &[(8, Mood::Well), (15, Mood::Down), (37, Mood::Well)],
    },
    // Three attempts in three seconds: the longer of its two bad times fills the dead letter.
    Actor {
        name: "legacy",
        policy: "job-status",
        wants: &[Kind::ParcelShipped, Kind::CustomerUpdated],
        script: &[
            (4, Mood::Well),
            (5, Mood::Closes),
            (6, Mood::Well),
            (2, Mood::Closes),
            (6, Mood::Well),
            (3, Mood::Silent),
            (14, Mood::Well),
        ],
    },
];

impl Actor {
    /// Its mood at a moment of the demo, and when that ends.
    pub(super) fn mood(&self, at: Duration) -> (Mood, Duration) {
        let round: u64 = self.script.iter().map(|(seconds, _)| seconds).sum();
        let begun = at.as_secs() / round * round;
        let mut end = Duration::from_secs(begun);
        for (seconds, mood) in self.script {
            end += Duration::from_secs(*seconds);
            if at < end {
                return (*mood, end);
            }
        }
        (Mood::Well, end)
    }

    /// When it next stops listening: the beginning of a time of `Down` that has not begun yet.
    pub(super) fn next_down(&self, after: Duration) -> Option<Duration> {
        let (mut mood, mut end) = self.mood(after);
        for _ in 0..=self.script.len() {
            if mood != Mood::Down && self.mood(end).0 == Mood::Down {
                return Some(end);
            }
            (mood, end) = self.mood(end);
        }
        None
    }
}

/// The types of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    OrderCreated,
    InvoicePaid,
    ParcelShipped,
    CustomerUpdated,
}

/// Of ten events in a row: four orders, three invoices, two parcels, one customer.
const MIX: [Kind; 10] = [
    Kind::OrderCreated,
    Kind::InvoicePaid,
    Kind::ParcelShipped,
    Kind::OrderCreated,
    Kind::CustomerUpdated,
    Kind::InvoicePaid,
    Kind::OrderCreated,
    Kind::ParcelShipped,
    Kind::InvoicePaid,
    Kind::OrderCreated,
];

impl Kind {
    pub(super) const ALL: [Self; 4] =
        [Self::OrderCreated, Self::InvoicePaid, Self::ParcelShipped, Self::CustomerUpdated];

    /// What the event of this number is.
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

    pub(super) fn wanted_by(self) -> [bool; LANES] {
        std::array::from_fn(|lane| CAST[lane].wants.contains(&self))
    }
}

const PRODUCTS: [(&str, u64); 4] =
    [("door knocker, brass", 4900), ("door bell", 1950), ("letter box", 7400), ("house number 7", 890)];
const PEOPLE: [&str; 4] = ["Ada", "Grace", "Edsger", "Barbara"];

/// The payload of the event of this number. Its `id` is how the receiver tells the events apart.
pub(super) fn payload(number: u64) -> Value {
    let pick = usize::try_from(number / 3 % 4).unwrap_or(0);
    let (product, cents) = PRODUCTS[pick];
    let quantity = 1 + number % 3;
    let order = format!("ord_{}", 10_000 + number);
    let data = match Kind::of(number) {
        Kind::OrderCreated => json!({
            "order": order,
            "customer": { "name": PEOPLE[pick], "country": "ES" },
            "lines": [{ "product": product, "quantity": quantity, "unitPriceCents": cents }],
            "totalCents": cents * quantity,
            "currency": "EUR",
        }),
        Kind::InvoicePaid => json!({
            "invoice": format!("inv_{}", 70_000 + number),
            "order": order,
            "amountCents": cents * quantity,
            "currency": "EUR",
            "method": "card",
        }),
        Kind::ParcelShipped => json!({
            "order": order,
            "carrier": "Correos",
            "tracking": format!("PQ{:09}ES", number * 7919 % 1_000_000_000),
            "weightGrams": 350 * quantity,
        }),
        Kind::CustomerUpdated => json!({
            "customer": format!("cus_{}", 400 + number % 90),
            "changed": ["email"],
            "email": format!("{}@example.com", PEOPLE[pick].to_lowercase()),
        }),
    };
    json!({ "id": event_id(number), "type": Kind::of(number).name(), "data": data })
}

pub(super) fn event_id(number: u64) -> String {
    format!("evt_{number}")
}

/// The number of an event of ours, from the payload as it arrived.
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

    fn actor(name: &str) -> &'static Actor {
        CAST.iter().find(|actor| actor.name == name).unwrap()
    }

    #[test]
    fn moods_follow_the_script_round_after_round() {
        let partner = actor("partner");
        assert_eq!(partner.mood(secs(0)), (Mood::Well, secs(8)));
        assert_eq!(partner.mood(secs(8)), (Mood::Down, secs(23)));
        assert_eq!(partner.mood(Duration::from_millis(22_999)), (Mood::Down, secs(23)));
        assert_eq!(partner.mood(secs(23)), (Mood::Well, secs(60)));
        assert_eq!(partner.mood(secs(70)), (Mood::Down, secs(83)));
    }

    #[test]
    fn the_next_time_down_is_found_in_this_round_or_the_next() {
        let partner = actor("partner");
        assert_eq!(partner.next_down(secs(1)), Some(secs(8)));
        assert_eq!(partner.next_down(secs(10)), Some(secs(68)));
        assert_eq!(partner.next_down(secs(30)), Some(secs(68)));
        assert_eq!(actor("shop").next_down(secs(5)), None);
    }

    #[test]
    fn every_built_in_policy_has_an_endpoint_and_every_kind_of_event_a_taker() {
        let policies: BTreeSet<_> = CAST.iter().map(|actor| actor.policy).collect();
        assert_eq!(policies, BTreeSet::from(BUILTIN_NAMES));
        for kind in Kind::ALL {
            assert!(kind.wanted_by().iter().filter(|wanted| **wanted).count() >= 2, "{kind:?}");
            assert!(MIX.contains(&kind));
        }
    }

    #[test]
    fn words_fit_the_table() {
        for (_, mood) in CAST.iter().flat_map(|actor| actor.script) {
            assert!(mood.words().len() <= 11, "{mood:?}");
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
