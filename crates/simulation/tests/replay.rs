//! A seed replays exactly: time, chance and order come from nowhere else.

use simulation::run::play;
use simulation::scenario::Scenario;

#[test]
fn repeated_runs_of_twenty_seeds_have_the_same_trace() {
    for seed in 0..20 {
        let [first, second] = [(); 2].map(|()| {
            let world = play(Scenario::new(seed), true);
            world.log.lock().trace.take().expect("traced")
        });
        let differs = first.iter().zip(&second).position(|(one, other)| one != other);
        if let Some(line) = differs {
            panic!("seed {seed}, line {line}: first `{}`, then `{}`", first[line], second[line]);
        }
        assert_eq!(first.len(), second.len(), "seed {seed}: one trace goes on where the other has ended");
        assert!(first.len() > 100, "seed {seed}: a trace of {} lines shows nothing", first.len());
    }
}
