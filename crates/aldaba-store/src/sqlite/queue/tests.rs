use super::*;
use crate::Done;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

const BATCH: usize = 8;
const WAIT: u64 = 100;

/// A queue whose time moves only when told, and how many it has refused.
struct Scene {
    queue: WriteQueue,
    failure: Failure,
    millis: Arc<AtomicU64>,
    refused: Arc<AtomicUsize>,
}

impl Scene {
    fn new() -> Self {
        let millis = Arc::<AtomicU64>::default();
        let clock = Monotonic::new({
            let millis = millis.clone();
            move || Duration::from_millis(millis.load(Ordering::Relaxed))
        });
        let limits = Limits {
            room: Room { operations: 10_000, bytes: 1 << 20 },
            wait: Duration::from_millis(WAIT),
            batch: Room { operations: BATCH, bytes: 1 << 10 },
        };
        let queue = WriteQueue::new(limits, clock);
        Self { queue, failure: Failure::none(), millis, refused: Arc::default() }
    }

    fn pass(&self, millis: u64) {
        self.millis.fetch_add(millis, Ordering::Relaxed);
    }

    /// Submits one; returns whether it was taken.
    fn put(&self, class: Class) -> bool {
        self.put_large(class, 0)
    }

    fn put_large(&self, class: Class, bytes: usize) -> bool {
        fn done<T>(refused: &Arc<AtomicUsize>) -> Done<T> {
            let refused = refused.clone();
            Done::new(move |result: Result<T, Error>| {
                refused.fetch_add(usize::from(result.is_err()), Ordering::Relaxed);
            })
        }
        let before = self.refused.load(Ordering::Relaxed);
        let (op, reply) = match class {
            Class::Result => (Op::Record(Vec::new()), Reply::Record(done(&self.refused))),
            Class::Accept => (Op::Accept(Vec::new()), Reply::Accept(done(&self.refused))),
            Class::Command => {
                let op = Op::SettleSetting("s", vec![0; bytes]);
                (op, Reply::SettleSetting(done(&self.refused)))
            }
            Class::Bulk => {
                let now = aldaba_delivery::Timestamp::MIN;
                let removal =
                    crate::operations::Removal { items: Vec::new(), now, event_ids_kept: Duration::ZERO };
                (Op::Remove(removal), Reply::Remove(done(&self.refused)))
            }
        };
        self.queue.put(op, reply, &self.failure);
        self.refused.load(Ordering::Relaxed) == before
    }

    /// How many of each class the next batch has.
    fn take(&self) -> [usize; Class::ALL.len()] {
        let mut counts = [0; Class::ALL.len()];
        for op in self.queue.take(None).unwrap().ops {
            counts[op.class() as usize] += 1;
        }
        counts
    }

    fn put_until_refused(&self) -> usize {
        (0..10_000).take_while(|_| self.put(Class::Accept)).count()
    }
}

#[test]
fn a_line_whose_first_has_waited_too_long_takes_no_more_of_its_class() {
    let scene = Scene::new();
    assert!(scene.put(Class::Accept));
    scene.pass(WAIT);
    assert!(scene.put(Class::Accept), "not too long yet");
    scene.pass(1);
    assert!(!scene.put(Class::Accept));
    assert!(scene.put(Class::Command), "nobody waits there");
    assert!(scene.put(Class::Result));
    scene.pass(WAIT + 1);
    assert!(!scene.put(Class::Command));
    assert!(scene.put(Class::Result), "results are never refused");
    assert_eq!(scene.take(), [2, 2, 1, 0]);
    assert!(scene.put(Class::Accept) && scene.put(Class::Command));
}

#[test]
fn ten_times_what_can_be_written_leaves_full_batches_and_a_bounded_wait() {
    let scene = Scene::new();
    let waiting = || scene.queue.lines.lock().of[Class::Accept as usize].operations;
    let refused = || scene.refused.load(Ordering::Relaxed);
    // 8 are written in 2 ms, so 400 in the time that one may wait; 80 come.
    for _ in 0..1000 {
        for _ in 0..10 * BATCH {
            scene.put(Class::Accept);
        }
        assert!(waiting() <= 401, "{}", waiting());
        assert_eq!(scene.take(), [0, BATCH, 0, 0]);
        scene.pass(2);
    }
    let taken = 1000 * BATCH + waiting();
    assert_eq!(taken + refused(), 1000 * 10 * BATCH);
    // The load ends: what was taken in is written, and as many are welcome at once.
    while waiting() > 0 {
        scene.take();
        scene.pass(2);
    }
    assert_eq!(scene.put_until_refused(), 401);
}

#[test]
fn after_a_slow_disk_it_takes_a_few_commits_to_trust_it_again() {
    let scene = Scene::new();
    for _ in 0..3 * BATCH {
        scene.put(Class::Accept);
    }
    for _ in 0..2 {
        scene.take();
        scene.pass(1000);
        assert!(!scene.put(Class::Accept), "the first one waits for too long");
    }
    scene.take();
    scene.pass(2);
    assert!(scene.put(Class::Accept), "somebody is always let in where nobody waits");
    let mut least = usize::MAX;
    for _ in 0..30 {
        scene.take();
        scene.pass(2);
        least = least.min(scene.put_until_refused());
    }
    assert!((1..BATCH).contains(&least), "{least}");
    assert!(scene.queue.lines.lock().of[Class::Accept as usize].operations > 300);
}

#[test]
fn what_results_leave_is_the_pace_of_the_others() {
    let scene = Scene::new();
    for _ in 0..200 {
        scene.put(Class::Accept);
    }
    for _ in 0..20 {
        for _ in 0..BATCH {
            scene.put(Class::Result);
        }
        // Half of a batch is for results; what no command takes is theirs too.
        assert_eq!(scene.take(), [5, 3, 0, 0]);
        scene.pass(3);
    }
    let lines = scene.queue.lines.lock();
    assert_eq!(lines.of[Class::Accept as usize].pace.wait(30), Duration::from_millis(30));
}

#[test]
fn one_that_is_larger_than_a_batch_does_not_wait_for_a_batch_of_its_own() {
    let scene = Scene::new();
    for _ in 0..3 * BATCH {
        scene.put(Class::Result);
        scene.put(Class::Accept);
    }
    assert!(scene.put_large(Class::Command, 1 << 12));
    assert!(scene.put(Class::Command));
    // Nothing fits beside it any more but what had its turn before.
    assert_eq!(scene.take(), [4, 3, 1, 0]);
    assert_eq!(scene.take(), [4, 3, 1, 0]);
}

#[test]
fn bulk_work_takes_one_slice_of_a_commit_and_is_never_kept_out() {
    let scene = Scene::new();
    for _ in 0..3 * BATCH {
        scene.put(Class::Result);
        scene.put(Class::Accept);
        scene.put(Class::Bulk);
    }
    assert_eq!(scene.take(), [4, 3, 0, 1]);
    for _ in 0..8 {
        let [.., bulk] = scene.take();
        assert_eq!(bulk, 1);
    }
    assert_eq!(scene.take(), [0, 0, 0, 1], "no second slice, though there is room");
}

#[test]
fn a_step_of_a_replay_is_bulk_work_and_takes_no_room_from_commands() {
    let scene = Scene::new();
    for _ in 0..3 {
        let now = aldaba_delivery::Timestamp::MIN;
        let id = aldaba_delivery::ReplayId::new(now, [0; 15]);
        let step = crate::ReplayStep { id, look: 1000, open: 100, most: 1000, now };
        scene.queue.put(Op::StepReplay(step), Reply::StepReplay(Done::new(drop)), &scene.failure);
    }
    for _ in 0..2 * BATCH {
        scene.put(Class::Command);
    }
    assert_eq!(scene.take(), [0, 0, BATCH - 1, 1]);
    assert_eq!(scene.take(), [0, 0, BATCH - 1, 1]);
    assert_eq!(scene.take(), [0, 0, 2, 1]);
}

#[test]
fn a_burst_of_results_does_not_make_the_commits_of_a_few_messages_long() {
    let mut lines = ClassQueues::default();
    let put = |lines: &mut ClassQueues, class: Class, count: usize| {
        for _ in 0..count {
            let (op, reply) = match class {
                Class::Result => (Op::Record(Vec::new()), Reply::Record(Done::new(drop))),
                _ => (Op::Accept(Vec::new()), Reply::Accept(Done::new(drop))),
            };
            lines.put(op, reply, Duration::ZERO);
        }
    };
    let take = |lines: &mut ClassQueues, now: Duration| {
        let batch = lines.take(Room { operations: 128, bytes: 1 << 20 }, now);
        let results = batch.ops.iter().filter(|op| op.class() == Class::Result).count();
        (results, batch.ops.len() - results)
    };
    // One commit by itself takes as long as twenty results.
    const FSYNC: Duration = Duration::from_micros(400);
    lines.cost.begin(Duration::ZERO, 1);
    lines.cost.end(FSYNC);
    lines.cost.begin(Duration::ZERO, 20);
    lines.cost.end(FSYNC * 2);
    put(&mut lines, Class::Result, 2000);
    assert_eq!(take(&mut lines, Duration::ZERO), (128, 0), "no message has come");
    put(&mut lines, Class::Accept, 1);
    assert_eq!(take(&mut lines, Duration::ZERO), (20, 1));
    assert_eq!(take(&mut lines, LULL), (20, 0), "another may come while it is written");
    assert_eq!(take(&mut lines, LULL * 2), (128, 0), "none comes any more");
    put(&mut lines, Class::Accept, 200);
    assert_eq!(take(&mut lines, Duration::ZERO), (80, 48), "where many come, the commits are full");
}

/// A message with so many deliveries.
fn message(deliveries: usize) -> (Op, Reply) {
    let (now, app) = (aldaba_delivery::Timestamp::MIN, aldaba_delivery::AppId::from_bytes([1; 20]));
    let delivery = crate::NewDelivery {
        endpoint: aldaba_delivery::EndpointId::from_bytes([2; 20]),
        due_at: now,
        ordered: false,
        skipped: None,
    };
    let message = crate::NewMessage {
        id: aldaba_delivery::MessageId::from_bytes([3; 20]),
        content: Arc::new(crate::Content::new("invoice.paid", "{}")),
        channels: Vec::new(),
        tags: Vec::new(),
        headers: Vec::new(),
        event_id_until: None,
        created_at: now,
        deliver_at: None,
        payload_until: None,
        only_for: None,
        job: None,
    };
    let accept = crate::Accept {
        org: aldaba_delivery::OrgId::from_bytes([4; 20]),
        app,
        version: 1,
        message,
        deliveries: vec![delivery; deliveries],
        idempotency: None,
        quota: None,
        direct: None,
        creates: None,
    };
    (Op::Accept(vec![accept]), Reply::Accept(Done::new(drop)))
}

/// How many results, messages and commands a batch has, of many of each that wait, where an operation takes so long.
fn of_many(deliveries: usize, micros: u64) -> (usize, usize, usize) {
    let mut lines = ClassQueues::default();
    for operations in [1, 101] {
        lines.cost.begin(Duration::ZERO, operations);
        lines.cost.end(Duration::from_micros(400 + (operations as u64 - 1) * micros));
    }
    for _ in 0..1000 {
        let (op, reply) = message(deliveries);
        lines.put(op, reply, Duration::ZERO);
        lines.put(Op::Record(Vec::new()), Reply::Record(Done::new(drop)), Duration::ZERO);
        let command = Op::SettleSetting("s", Vec::new());
        lines.put(command, Reply::SettleSetting(Done::new(drop)), Duration::ZERO);
    }
    let batch = lines.take(Room { operations: 128, bytes: 8 << 20 }, Duration::ZERO);
    let count = |class| batch.ops.iter().filter(|op| op.class() == class).count();
    (count(Class::Result), count(Class::Accept), count(Class::Command))
}

#[test]
fn messages_with_many_deliveries_make_a_commit_larger_as_long_as_it_stays_quick() {
    assert_eq!(of_many(1, 10), (64, 48, 16));
    assert_eq!(of_many(2, 10), (144, 48, 16), "as many messages, and the results of as many");
    assert_eq!(of_many(50, 10), (296, 4, 16), "four times the usual, and nothing of it for commands");
    // On a slow machine such a commit would keep everybody else waiting.
    let (results, messages, commands) = of_many(50, 60);
    let operations = results + 50 * messages + commands;
    assert!((185..=200).contains(&operations), "{operations}, which take 12 ms");
    assert_eq!(of_many(50, 1000), (64, 1, 14), "the usual");
}

#[test]
fn messages_with_many_deliveries_do_not_outrun_the_results() {
    let taken = |results: usize| {
        let mut lines = ClassQueues::default();
        for _ in 0..100 {
            let (op, reply) = message(50);
            lines.put(op, reply, Duration::ZERO);
        }
        for _ in 0..results {
            lines.put(Op::Record(Vec::new()), Reply::Record(Done::new(drop)), Duration::ZERO);
        }
        let batch = lines.take(Room { operations: 128, bytes: 8 << 20 }, Duration::ZERO);
        50 * batch.ops.iter().filter(|op| op.class() == Class::Accept).count()
    };
    assert_eq!(taken(0), 500, "nothing is being delivered: a commit is full of them");
    assert_eq!(taken(1), 100, "a receiver that gives few results does not slow them down to its own pace");
    assert_eq!(taken(150), 150);
    assert_eq!(taken(300), 200, "then the results have the rest");
}
