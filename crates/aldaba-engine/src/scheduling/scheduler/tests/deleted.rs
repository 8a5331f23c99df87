//! Nothing leaves for what is deleted.

use super::*;

#[test]
fn an_older_read_does_not_bring_a_deleted_endpoint_back() {
    let (endpoint, now) = (EndpointId::from_bytes([1; 20]), Timestamp::from_millis(0));
    let mut scheduler = Scheduler::new(Options::default(), Gates::default());
    scheduler.open_lane(endpoint, old_target().app, now);
    assert!(matches!(scheduler.run_once(now)[..], [Action::Read(_), Action::Refill(_)]));
    scheduler.endpoint_deleted(endpoint, old_target().app, now);
    scheduler.endpoint_read(endpoint, old_target(), Health::default(), now);
    let message = MessageId::from_bytes([3; 20]);
    let waiting = PendingDelivery {
        seq: Seq(1),
        message,
        due_at: now,
        attempts: 0,
        clock_start: now,
        replayed: false,
        sequence: Some(Seq(1)),
    };
    scheduler.refilled(endpoint, &[waiting], Options::default().lane_buffer);
    assert!(matches!(scheduler.run_once(now)[..], [Action::End(_, Reason::Cancelled)]));
}

#[test]
fn the_lanes_of_a_deleted_application_send_nothing_more_though_none_of_them_is_told() {
    let now = Timestamp::from_millis(0);
    let mut world = with_lanes(1000, 4, 10, |lane| lane / 2);
    let (gone, other) = (AppId::from_bytes([0; 20]), AppId::from_bytes([1; 20]));
    let started = world.started();
    assert_eq!(started.len(), 32, "each lane uses its limit, and two more are pending");
    world.scheduler.application_deleted(gone);
    let Some(waits) = world.scheduler.lanes[&lane_id(0)].awake.as_ref().map(|awake| awake.target.clone())
    else {
        panic!("it is awake");
    };
    let start = AttemptRequest {
        endpoint: lane_id(0),
        target: waits,
        pending: row_of(0, 0),
        content: None,
        lane_class: crate::scheduling::lane::LaneClass::New,
    };
    assert_eq!(
        world.scheduler.may_start(&start, now),
        MayStart::No,
        "a selected delivery that read its payload"
    );
    for start in started {
        world.end(start, true);
    }
    let actions = world.scheduler.run_once(now);
    let sent = actions
        .iter()
        .filter(|action| matches!(action, Action::Attempt(request) if request.target.app == other));
    let ended = actions
        .iter()
        .filter(|action| matches!(action, Action::End(request, _) if request.target.app == gone));
    assert_eq!((sent.count(), ended.count(), actions.len()), (4, 4, 8));
}

#[test]
fn a_deleted_application_is_remembered_as_long_as_it_has_lanes() {
    let (now, app) = (Timestamp::from_millis(0), AppId::from_bytes([0; 20]));
    let mut world = with_lanes(1000, 1, 1, |_| 0);
    let [start] = world.started()[..] else { panic!("it sends") };
    world.scheduler.application_deleted(app);
    let later = now + Duration::from_secs(3600);
    world.scheduler.forget_idle(later, later);
    assert!(world.scheduler.deleted_apps.contains(&app), "one of its requests is still under way");
    world.end(start, true);
    assert!(world.started().is_empty());
    world.scheduler.forget_idle(later, later);
    assert!(world.scheduler.deleted_apps.is_empty() && world.scheduler.lanes.is_empty());
    // What is ended for it needs no lane.
    world.scheduler.application_deleted(app);
    assert_eq!(world.scheduler.reserve(lane_id(7), app, row_of(7, 0), now), Some(row_of(7, 0)));
    world.scheduler.reservation_ended(lane_id(7), row_of(7, 0).seq, true, now);
    assert!(world.scheduler.lanes.is_empty());
}
