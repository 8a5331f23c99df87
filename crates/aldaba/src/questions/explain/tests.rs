use super::*;
use aldaba_delivery::policy::{Overrides, builtin};
use aldaba_delivery::{
    AppId, EndpointId, GateScope, Health, HealthStatus, MessageId, OnExhausted, Ordering, OrgId, Reason,
};
use aldaba_store::{Content, Seq};

const NOW: Timestamp = Timestamp::from_millis(1_780_000_000_000);

fn seconds(seconds: i64) -> Timestamp {
    Timestamp::from_millis(NOW.millis() + seconds * 1000)
}

fn endpoint() -> Endpoint {
    Endpoint {
        config: aldaba_store::EndpointConfig {
            throttle_rate: Some(5),
            ..aldaba_store::EndpointConfig::new("https://example.com/", "public-api")
        },
        last_error: None,
        id: EndpointId::from_bytes([1; 20]),
        app: AppId::from_bytes([2; 20]),
        org: OrgId::from_bytes([3; 20]),
        sealed: Vec::new(),
        created_at: seconds(-100),
        updated_at: seconds(-100),
        deleted: false,
        direct: false,
        health: Health::default(),
    }
}

fn delivery_that(state: DeliveryState, attempts: u32) -> DeliveryStatus {
    let (endpoint, message) = (EndpointId::from_bytes([1; 20]), MessageId::from_bytes([4; 20]));
    let (replayed, retries, sequence) = (false, attempts.saturating_sub(1), Some(Seq(1)));
    DeliveryStatus {
        seq: Seq(1),
        endpoint,
        message,
        attempts,
        clock_start: NOW,
        replayed,
        retries,
        sequence,
        state,
    }
}

struct Case {
    delivery: DeliveryStatus,
    endpoint: Endpoint,
    wait_reasons: WaitReasons,
    delivered_by: Option<u32>,
}

impl Case {
    fn waiting(due_in: i64, attempts: u32) -> Self {
        let state = DeliveryState::Waiting { due_at: seconds(due_in) };
        let delivery = delivery_that(state, attempts);
        Self { delivery, endpoint: endpoint(), wait_reasons: WaitReasons::default(), delivered_by: None }
    }

    fn why(&self) -> Why {
        let policy = builtin("public-api", &Overrides::default()).unwrap().unwrap();
        let text = "HTTP 503: Service Unavailable".to_owned();
        let failure = Failure { status_code: Some(503), kind: None, text };
        let facts = DeliveryFacts {
            delivery: &self.delivery,
            endpoint: &self.endpoint,
            policy: &policy,
            wait_reasons: self.wait_reasons,
            ahead: None,
            delivered_by: self.delivered_by,
            failure: Some(&failure).filter(|_| self.delivery.attempts > 0),
        };
        delivery(&facts, NOW)
    }

    #[track_caller]
    fn says(&self, reason: &str, next_attempt: Option<i64>) {
        let why = self.why();
        assert_eq!((why.reason(), why.next_attempt), (reason, next_attempt.map(seconds)), "{why:?}");
    }
}

#[test]
fn what_has_ended_says_how() {
    let mut case = Case::waiting(0, 2);
    case.delivery.state = DeliveryState::Delivered { at: NOW };
    case.says("delivered", None);
    assert!(case.why().explanation().starts_with("Delivered by attempt 2 at "), "{:?}", case.why());
    // One by hand is not among those that the policy counts.
    case.delivered_by = Some(3);
    assert!(case.why().explanation().starts_with("Delivered by attempt 3 at "), "{:?}", case.why());
    for reason in Reason::ALL {
        case.delivery.state = DeliveryState::Dead { at: NOW, reason };
        case.says(reason.name(), None);
        assert!(case.why().explanation().starts_with(reason.text()));
        assert!(case.why().explanation().contains("after 2 attempts; the last error: HTTP 503"));
    }
}

#[test]
fn what_waits_says_what_for() {
    Case::waiting(-1, 0).says("due", Some(-1));
    Case::waiting(60, 0).says("scheduled", Some(60));
    let retry = Case::waiting(60, 2);
    retry.says("retry", Some(60));
    let text = "Retry 2 of 5 is planned for 2026-05-28T20:27:40.000Z, after: HTTP 503: Service Unavailable";
    assert_eq!(retry.why().explanation(), text);
    let mut case = Case::waiting(-1, 0);
    case.wait_reasons.throttled_until = Some(seconds(1));
    case.says("throttled", Some(1));
    case.wait_reasons.throttled_until = None;
    case.wait_reasons.app_throttled_until = Some(seconds(2));
    case.says("application_throttled", Some(2));
    case.wait_reasons.app_throttled_until = None;
    case.wait_reasons.origin_busy = true;
    case.says("host_busy", Some(-1));
    case.wait_reasons.origin_busy = false;
    case.wait_reasons.paused = true;
    case.says("paused", Some(0));
    case.wait_reasons.in_flight = true;
    case.says("in_flight", None);
    case.endpoint.deleted = true;
    case.says("endpoint_deleted", None);
}

#[test]
fn what_is_for_later_says_that_it_takes_its_place_then() {
    let mut case = Case::waiting(60, 0);
    case.endpoint.config.ordering = Ordering::Fifo(OnExhausted::Skip);
    case.delivery.sequence = None;
    case.says("scheduled", Some(60));
    assert!(case.why().explanation().contains("takes its place"), "{:?}", case.why());
}

#[test]
fn a_hold_counts_where_it_lasts_longer_than_the_wait() {
    let hold = |until| Some(HostHold { scope: GateScope::Host, until });
    let mut case = Case::waiting(60, 1);
    case.wait_reasons.hold = hold(Some(seconds(30)));
    case.says("retry", Some(60));
    case.wait_reasons.hold = hold(Some(seconds(90)));
    case.says("host_held", Some(90));
    case.endpoint.health.quiet_until = Some(seconds(120));
    case.says("receiver_busy", Some(120));
    case.endpoint.health.quiet_until = None;
    case.wait_reasons.hold = hold(None);
    case.says("host_held", None);
}

#[test]
fn a_failed_endpoint_waits_for_its_probe_or_its_owner() {
    let mut case = Case::waiting(-1, 0);
    case.endpoint.health.status = HealthStatus::Failed;
    case.says("endpoint_failed", None);
    case.endpoint.health.next_probe_at = Some(seconds(300));
    case.endpoint.health.probe_gap = std::time::Duration::from_secs(300);
    case.says("endpoint_failed", Some(300));
    case.endpoint.health.next_probe_at = Some(seconds(-1));
    case.says("endpoint_failed", None);
    case.endpoint.health.status = HealthStatus::Gone;
    case.says("endpoint_gone", None);
}

#[test]
fn a_block_says_so_only_as_long_as_the_ordering_asks_for_it() {
    let mut case = Case::waiting(-1, 0);
    case.endpoint.health.status = HealthStatus::Blocked;
    case.endpoint.health.quiet_until = Some(seconds(120));
    case.endpoint.config.ordering = Ordering::Fifo(OnExhausted::Block);
    case.says("endpoint_blocked", None);
    case.endpoint.config.ordering = Ordering::Fifo(OnExhausted::Skip);
    case.says("receiver_busy", Some(120));
}

#[test]
fn an_absent_delivery_says_why() {
    let content = Content::new("paid", r#"{"amount":5}"#);
    let message = Message {
        expunged: false,
        tags: Vec::new(),
        headers: Vec::new(),
        deliver_at: None,
        payload_until: None,
        job: None,
        only_for: None,
        id: MessageId::from_bytes([4; 20]),
        app: AppId::from_bytes([2; 20]),
        content,
        channels: vec!["c1".into()],
        created_at: NOW,
    };
    let why = |endpoint: Endpoint| told(&endpoint, &message).reason();
    assert_eq!(why(endpoint()), "subscription_changed");
    assert_eq!(why(Endpoint { created_at: seconds(1), ..endpoint() }), "endpoint_newer");
    assert_eq!(
        why(endpoint().with(|config| config.event_types = vec!["other".into()])),
        "event_type_not_subscribed"
    );
    assert_eq!(why(endpoint().with(|config| config.channels = vec!["c2".into()])), "channel_not_subscribed");
    let filtered = endpoint().with(|config| {
        config.filter = Some(
            aldaba_delivery::Filter::parse(r#"{"all": [{"payload": "$.amount", "gte": 100}]}"#)
                .unwrap()
                .into(),
        );
    });
    assert_eq!(
        told(&filtered, &message).explanation(),
        "Not sent: the endpoint's filter keeps it back. At all[0].payload: `$.amount` is 5, and the filter asks \
         for at least 100 (as it is now)"
    );
    assert_eq!(why(filtered.clone()), "filtered");
    let deleted = Message { expunged: true, ..message.clone() };
    let gone = told(&filtered, &deleted);
    assert!(gone.reason() == "filtered" && gone.explanation().contains("was deleted"), "{gone:?}");
    let example = Message { only_for: Some(EndpointId::from_bytes([9; 20])), ..message };
    assert_eq!(told(&endpoint(), &example).reason(), "for_another_endpoint");
}

fn told(endpoint: &Endpoint, message: &Message) -> Why {
    let mismatch = aldaba_engine::mismatches(&[endpoint.into()], &message.facts()).remove(0);
    absence(endpoint, message, mismatch)
}
