use super::pausing::Point;
use super::process::{Process, Which};
use super::sender::send;
use super::{Trial, how_many};
use std::time::Duration;

/// Copies of an event after which it must be accepted.
const MAX_TRIES: usize = 100;

/// The step between the moments at which a running commit is killed.
const STEP: Duration = Duration::from_micros(80);

/// The results of the trials at one point.
#[derive(Debug, Default)]
struct KillReport {
    trials: usize,
    /// Trials whose copy after the crash was a duplicate: the commit had happened.
    committed: usize,
    /// Events with another number of effects than one.
    wrong: Vec<(String, u64)>,
}

/// Each event has one effect, although its process is killed at this point.
pub(crate) async fn kill_at<T: Trial>(point: Point) {
    let trial = T::set().await;
    let report = kill_repeatedly(&trial, Which::Right, point).await;
    println!("{} {point:?}: {} trials, {} had committed", T::NAME, report.trials, report.committed);
    assert_eq!(report.wrong, []);
    assert_eq!(trial.counted().await, report.trials as u64);
    match point {
        Point::Claimed | Point::HalfDone | Point::Worked => assert_eq!(report.committed, 0),
        Point::Committing => {}
        Point::Committed | Point::Answered => assert_eq!(report.committed, report.trials),
    }
}

/// The same trials detect a ledger that wrongly marks before the work.
pub(crate) async fn find_out<T: Trial>() {
    let trial = T::set().await;
    for point in [Point::Claimed, Point::HalfDone, Point::Worked] {
        let report = kill_repeatedly(&trial, Which::Hasty, point).await;
        assert!(!report.wrong.is_empty(), "nothing was found at {point:?}");
        assert!(report.wrong.iter().all(|(_, effects)| *effects == 0), "{report:?}");
    }
}

async fn kill_repeatedly<T: Trial>(trial: &T, which: Which, point: Point) -> KillReport {
    // A few trials suffice to detect the mistake.
    let trials = if which == Which::Hasty { 3 } else { how_many() };
    let mut report = KillReport { trials, ..KillReport::default() };
    let mut process = Process::start(trial, which).await;
    for number in 0..trials {
        let event_id = format!("evt_{}_{number}", point.name());
        crash(process, point, &event_id, number).await;
        process = Process::start(trial, which).await;
        report.committed += usize::from(settle(process.port, &event_id).await);
        let effects = trial.effects(&event_id).await;
        if effects != 1 {
            report.wrong.push((event_id, effects));
        }
    }
    report
}

/// Sends an event, and kills its process at this point.
async fn crash(mut process: Process, point: Point, event_id: &str, number: usize) {
    if point == Point::Answered {
        let answer = send(process.port, event_id, None).await.expect("nobody has killed it yet");
        assert_eq!((answer.status, answer.is_duplicate()), (200, false), "{answer:?}");
        return process.kill().await;
    }
    let request = tokio::spawn({
        let (port, event_id) = (process.port, event_id.to_owned());
        async move { send(port, &event_id, Some(point)).await }
    });
    process.stands_still().await;
    if point == Point::Committing && number.is_multiple_of(2) {
        std::thread::sleep(STEP * (number as u32 / 2 % 16));
    }
    process.kill().await;
    assert!(request.await.unwrap().is_none(), "it was killed before its answer");
}

/// Sends an event until it is accepted, and returns whether it was a duplicate.
async fn settle(port: u16, event_id: &str) -> bool {
    for _ in 0..MAX_TRIES {
        match send(port, event_id, None).await {
            Some(answer) if answer.status == 200 => return answer.is_duplicate(),
            Some(answer) => assert!(matches!(answer.status, 409 | 503), "{answer:?}"),
            None => panic!("nobody has killed this one"),
        }
        // The delay between two copies.
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{event_id} is never taken");
}
