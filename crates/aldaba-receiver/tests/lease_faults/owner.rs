//! A process of its own that handles events under leases, as it is told through its input, and says what happens. It
//! is this test program again.

use crate::millis;
use crate::sabotage::{Sabotage, Saboteur};
use crate::stores::InRedis;
use aldaba_receiver::lease::{
    KeyValueLeases, KeyValueOptions, LeaseTimes, OwnedLease, RedisLeases, RedisOptions,
};
use aldaba_receiver::{Claim, Event, Ledger, LedgerError, Work};
use http::HeaderMap;
use std::fs::OpenOptions;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a copy waits for the end of another's work.
const WAIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The options of an owner.
#[derive(Clone, Debug)]
pub(crate) struct Orders {
    pub(crate) ledger: Kind,
    pub(crate) address: String,
    /// A line for every effect.
    pub(crate) effects: PathBuf,
    pub(crate) life: Duration,
    pub(crate) answer: Duration,
    pub(crate) sabotage: Option<Sabotage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    KeyValue,
}

/// The behaviour of a handler besides its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// It does not look whether its lease is lost.
    Careless,
    /// It fails if it finds its lease lost just before its effect.
    Careful,
    /// It fails before its effect.
    Failing,
}

impl Orders {
    pub(crate) fn to_environment(&self) -> [(&'static str, String); 6] {
        let sabotage = self.sabotage.map_or(String::new(), |sabotage| format!("{sabotage:?}"));
        [
            ("ALDABA_LEASE_LEDGER", format!("{:?}", self.ledger)),
            ("ALDABA_LEASE_ADDRESS", self.address.clone()),
            ("ALDABA_LEASE_EFFECTS", self.effects.display().to_string()),
            ("ALDABA_LEASE_LIFE", self.life.as_millis().to_string()),
            ("ALDABA_LEASE_ANSWER", self.answer.as_millis().to_string()),
            ("ALDABA_LEASE_SABOTAGE", sabotage),
        ]
    }

    /// Nothing, in the process that runs the tests.
    fn from_environment() -> Option<Self> {
        let get = |name| std::env::var(name).ok();
        Some(Self {
            ledger: if get("ALDABA_LEASE_LEDGER")? == "Redis" { Kind::Redis } else { Kind::KeyValue },
            address: get("ALDABA_LEASE_ADDRESS")?,
            effects: get("ALDABA_LEASE_EFFECTS")?.into(),
            life: millis(get("ALDABA_LEASE_LIFE")?.parse().unwrap()),
            answer: millis(get("ALDABA_LEASE_ANSWER")?.parse().unwrap()),
            sabotage: Sabotage::named(&get("ALDABA_LEASE_SABOTAGE")?),
        })
    }
}

/// Runs until its input ends, if this process is an owner.
pub(crate) fn run_if_told() {
    let Some(orders) = Orders::from_environment() else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let times = LeaseTimes { life: orders.life, answer: orders.answer, ..LeaseTimes::default() };
        match orders.ledger {
            Kind::Redis => {
                let options = RedisOptions { times, ..RedisOptions::default() };
                let leases = match orders.sabotage {
                    None => RedisLeases::open(orders.address.as_str(), options),
                    Some(sabotage) => {
                        RedisLeases::over(Saboteur::at(&orders.address, sabotage).await, options)
                    }
                };
                let leases = leases.unwrap();
                serve(leases.clone(), move || leases.expired_leases(), orders.effects).await;
            }
            Kind::KeyValue => {
                let options = KeyValueOptions { times, ..KeyValueOptions::default() };
                let leases = KeyValueLeases::new(InRedis::at(&orders.address).await, options).unwrap();
                let count = leases.clone();
                serve(leases, move || count.expired_leases(), orders.effects).await;
            }
        }
    });
}

async fn serve<L: Ledger<Work = OwnedLease>>(leases: L, expired: impl Fn() -> u64, effects: PathBuf) {
    let (said, mut heard) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            if said.send(line.unwrap()).is_err() {
                return;
            }
        }
    });
    let leases = Arc::new(leases);
    say("ready");
    while let Some(line) = heard.recv().await {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["take", id, before, after, manner] => {
                let handler = Handler {
                    id: id.to_owned(),
                    before: millis(before.parse().unwrap()),
                    after: millis(after.parse().unwrap()),
                    manner: match manner {
                        "Careful" => Manner::Careful,
                        "Failing" => Manner::Failing,
                        _ => Manner::Careless,
                    },
                    effects: effects.clone(),
                };
                tokio::spawn(handler.handle(Arc::clone(&leases)));
            }
            ["expired"] => say(&format!("expired {}", expired())),
            _ => panic!("what is `{line}`?"),
        }
    }
}

struct Handler {
    id: String,
    before: Duration,
    after: Duration,
    manner: Manner,
    effects: PathBuf,
}

impl Handler {
    async fn handle<L: Ledger<Work = OwnedLease>>(self, leases: Arc<L>) {
        let event = Event::new(self.id.as_str(), "payment.success", "{}", HeaderMap::new());
        let end = match leases.claim(&event, WAIT_TIMEOUT).await {
            Ok(Claim::New(lease)) => self.work(lease).await,
            Ok(Claim::Duplicate) => "duplicate",
            Ok(Claim::OtherBody) => "other-body",
            Ok(Claim::InProgress) => "in-progress",
            Err(_) => "unavailable",
        };
        say(&format!("end {} {end}", self.id));
    }

    async fn work(&self, lease: OwnedLease) -> &'static str {
        say(&format!("begun {}", self.id));
        tokio::time::sleep(self.before).await;
        if self.manner == Manner::Failing || (self.manner == Manner::Careful && lease.is_lost()) {
            lease.abandon().await;
            return "failed";
        }
        let mut effects = OpenOptions::new().append(true).open(&self.effects).unwrap();
        effects.write_all(format!("{}\n", self.id).as_bytes()).unwrap();
        say(&format!("effect {}", self.id));
        tokio::time::sleep(self.after).await;
        match lease.complete().await {
            Ok(()) => "new",
            Err(LedgerError::Lost(_)) => "lost",
            Err(_) => "unavailable",
        }
    }
}

/// In one piece, at once, and apart from what the test program says of itself.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n> {line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}
