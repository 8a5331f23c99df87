use super::*;
use crate::{Policies, Profile};
use aldaba_delivery::policy::Overrides;
use aldaba_delivery::{AppId, MessageId, Origin};

/// An endpoint as a read that began before its deletion saw it.
fn old_target() -> Target {
    let policies = Policies::new(&Overrides::default()).expect("the built-in policies are valid");
    Target {
        app: AppId::from_bytes([2; 20]),
        policy: policies.of("standard").clone(),
        profile: Profile::Standard,
        throttle_rate: None,
        deleted: false,
        origin: Origin::new("https", "example.com", 443),
        address: Err("nothing is sent in this test"),
    }
}

#[test]
fn an_older_read_does_not_bring_a_deleted_endpoint_back() {
    let (endpoint, now) = (EndpointId::from_bytes([1; 20]), Timestamp::from_millis(0));
    let mut turns = Turns::new(Options::default(), Gates::default());
    assert_eq!(turns.open(endpoint, now), Opening::ReadEndpoint);
    assert_eq!(turns.removed(endpoint, now), Opening::Known);
    turns.opened(endpoint, old_target(), Health::default(), now);
    assert!(matches!(turns.run_once(now)[..], [Action::Refill(_)]));
    let message = MessageId::from_bytes([3; 20]);
    let waiting = Waiting { seq: Seq(1), message, due_at: now, attempts: 0, clock_start: now };
    turns.refilled(endpoint, &[waiting], Options::default().lane_buffer);
    assert!(matches!(turns.run_once(now)[..], [Action::End(_, Reason::Cancelled)]));
}
