//! A Redis server, owners as processes, and an account of what came of it all.

use crate::millis;
use crate::owner::{Kind, Manner, Orders};
use crate::sabotage::Sabotage;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use tempfile::NamedTempFile;
use test_servers::Redis;

/// How long a lease lives here, so that a trial need not wait for long; and how long an answer may take.
pub(crate) const LIFE: Duration = Duration::from_millis(1200);
const ANSWER: Duration = Duration::from_millis(400);

/// Longer than a lease lives.
pub(crate) const BEYOND: Duration = Duration::from_millis(1500);

/// How long a trial waits for something that must come.
const PATIENT: Duration = Duration::from_secs(60);

/// How often a sender repeats an event that was not accepted.
const TRIES: usize = 50;

/// How many rounds of each trial there are: `ALDABA_LEASE_TRIALS`.
pub(crate) fn rounds() -> u64 {
    std::env::var("ALDABA_LEASE_TRIALS").ok().map_or(1, |rounds| rounds.parse().expect("a number of rounds"))
}

pub(crate) struct Trial {
    pub(crate) redis: Redis,
    orders: Orders,
    effects: NamedTempFile,
    events: BTreeSet<String>,
}

impl Trial {
    pub(crate) fn set(ledger: Kind) -> Self {
        Self::set_with(ledger, LIFE, None)
    }

    pub(crate) fn set_with(ledger: Kind, life: Duration, sabotage: Option<Sabotage>) -> Self {
        let (redis, effects) = (Redis::start(), NamedTempFile::new().unwrap());
        let (address, path) = (redis.url(), effects.path().to_owned());
        let answer = ANSWER.min(life / 3);
        let orders = Orders { ledger, address, effects: path, life, answer, sabotage };
        Self { redis, orders, effects, events: BTreeSet::new() }
    }

    pub(crate) fn is_sabotaged(&self) -> bool {
        self.orders.sabotage.is_some()
    }

    pub(crate) fn owner(&self) -> Owner {
        Owner::start(&self.orders)
    }

    /// Names for some events of a round.
    pub(crate) fn events(&mut self, name: &str, count: usize) -> Vec<String> {
        let events: Vec<_> = (0..count).map(|number| format!("{name}-{number}")).collect();
        self.events.extend(events.iter().cloned());
        events
    }

    /// Effects by event.
    pub(crate) fn effects(&self) -> BTreeMap<String, usize> {
        let mut effects: BTreeMap<_, _> = self.events.iter().map(|event| (event.clone(), 0)).collect();
        for line in std::fs::read_to_string(self.effects.path()).unwrap().lines() {
            *effects.get_mut(line).expect("an effect of an event there is") += 1;
        }
        effects
    }

    /// The number of effects beyond the first of each event. No event is lost.
    #[track_caller]
    pub(crate) fn doubles(&self) -> usize {
        let effects = self.effects();
        let lost: Vec<_> = effects.iter().filter(|(_, count)| **count == 0).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        effects.values().map(|count| count - 1).sum()
    }

    /// There are no more doubles than leases that have expired.
    #[track_caller]
    pub(crate) fn account(&self, expired: usize) {
        let doubles = self.doubles();
        assert!(doubles <= expired, "{doubles} doubles with {expired} expired leases: {:?}", self.effects());
    }

    /// Prints the rounds of a long run.
    pub(crate) fn report(&self, what: &str) {
        println!("{what}: {} events, {} effects twice", self.events.len(), self.doubles());
    }
}

/// A process that handles events. It ends with this.
pub(crate) struct Owner {
    process: Child,
    input: ChildStdin,
    said: Receiver<String>,
    heard: Vec<String>,
}

impl Owner {
    fn start(orders: &Orders) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([
            "--exact",
            "the_owner_process_runs_the_requested_mode",
            "--nocapture",
            "--test-threads=1",
        ]);
        command.envs(orders.to_environment()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let (input, output) = (process.stdin.take().unwrap(), process.stdout.take().unwrap());
        let (say, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some(line) = line.strip_prefix("> ")
                    && say.send(line.to_owned()).is_err()
                {
                    return;
                }
            }
        });
        let mut owner = Self { process, input, said, heard: Vec::new() };
        owner.hears("ready");
        owner
    }

    fn id(&self) -> i32 {
        self.process.id().try_into().unwrap()
    }

    fn tell(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    /// Gives it a copy of an event. It works for a while before its effect, and after it.
    pub(crate) fn take(&mut self, event: &str, before: Duration, after: Duration) {
        self.take_in(event, before, after, Manner::Careless);
    }

    pub(crate) fn take_in(&mut self, event: &str, before: Duration, after: Duration, manner: Manner) {
        self.tell(&format!("take {event} {} {} {manner:?}", before.as_millis(), after.as_millis()));
    }

    /// Waits until it says something that begins so, and forgets it.
    #[track_caller]
    pub(crate) fn hears(&mut self, beginning: &str) -> String {
        if let Some(at) = self.heard.iter().position(|line| line.starts_with(beginning)) {
            return self.heard.remove(at);
        }
        loop {
            match self.said.recv_timeout(PATIENT) {
                Ok(line) if line.starts_with(beginning) => return line,
                Ok(line) => self.heard.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("no `{beginning}`, but {:?}", self.heard),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("it ended without `{beginning}`: {:?}", self.heard)
                }
            }
        }
    }

    /// How its work on a copy ended.
    #[track_caller]
    pub(crate) fn end(&mut self, event: &str) -> String {
        let line = self.hears(&format!("end {event} "));
        line.rsplit(' ').next().unwrap().to_owned()
    }

    /// Sends an event as a sender does: again, until it is accepted.
    #[track_caller]
    pub(crate) fn deliver(&mut self, event: &str) -> String {
        self.take(event, Duration::ZERO, Duration::ZERO);
        self.until_accepted(event)
    }

    /// Sends an event until it is accepted: as new or as a duplicate.
    #[track_caller]
    pub(crate) fn until_accepted(&mut self, event: &str) -> String {
        for _ in 0..TRIES {
            let end = self.end(event);
            if ["new", "duplicate"].contains(&end.as_str()) {
                return end;
            }
            // The delay between two copies.
            std::thread::sleep(millis(50));
            self.take(event, Duration::ZERO, Duration::ZERO);
        }
        panic!("{event} is never accepted");
    }

    pub(crate) fn expired(&mut self) -> usize {
        self.tell("expired");
        self.hears("expired ").rsplit(' ').next().unwrap().parse().unwrap()
    }

    pub(crate) fn pause(&self) {
        test_servers::pause(self.id());
    }

    pub(crate) fn resume(&self) {
        test_servers::resume(self.id());
    }

    /// Ends it as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // It may have ended, or be paused.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
