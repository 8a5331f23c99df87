use super::process::{Process, Which};
use super::sender::send;
use super::{Trial, how_many};
use futures_util::future::join_all;

/// To each of two processes.
const COPIES: usize = 32;

/// All are answered with 200, one of them as new, and there is one effect.
pub(crate) async fn race<T: Trial>() {
    let trial = T::set().await;
    let processes = [Process::start(&trial, Which::Right).await, Process::start(&trial, Which::Right).await];
    for round in 1..=how_many() {
        let event_id = format!("evt_race_{round}");
        let copies = (0..COPIES).flat_map(|_| &processes).map(|process| send(process.port, &event_id, None));
        let answers: Vec<_> = join_all(copies).await.into_iter().map(Option::unwrap).collect();
        assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
        let new = answers.iter().filter(|answer| !answer.is_duplicate()).count();
        assert_eq!((new, trial.effects(&event_id).await), (1, 1), "{event_id}");
        assert_eq!(trial.counted().await, round as u64);
    }
}
