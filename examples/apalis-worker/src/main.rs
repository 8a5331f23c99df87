//! A worker that sends emails. Each job may name a URL that wants to know how it ended.
//!
//! The emails are make-believe: `third-time@…` fails twice before it works, `nobody@…` always fails, `banned@…` fails
//! and is not worth another try, `slow@…` takes its time. Everybody else gets their email.

use aldaba_client::apalis::{JobWebhooks, WebhookJob};
use aldaba_client::{Client, Dispatcher};
use apalis::prelude::*;
#[cfg(feature = "postgres")]
use apalis_postgres::{Config, PgPool as Pool, PostgresStorage as Storage};
#[cfg(not(feature = "postgres"))]
use apalis_sqlite::{Config, SqlitePool as Pool, SqliteStorage as Storage};
use serde::{Deserialize, Serialize};
use std::env;
use std::process::ExitCode;
use std::time::Duration;
use ulid::Ulid;

const USAGE: &str = "\
apalis-worker setup                        makes the queue's tables; once
apalis-worker send ADDRESS [WEBHOOK_URL]   puts a job into the queue, and prints its id
apalis-worker work                         runs jobs until Ctrl-C";

/// How often a job is tried. apalis does it 25 times if nothing is said.
const MAX_ATTEMPTS: usize = 3;
/// How often the worker looks for new jobs.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// How long the worker waits at its end for webhooks that are not dispatched yet.
const GOODBYE: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Email {
    to: String,
    webhook_url: Option<String>,
}

impl WebhookJob for Email {
    fn webhook_url(&self) -> Option<&str> {
        self.webhook_url.as_deref()
    }

    fn job_type(&self) -> &str {
        "email.send"
    }
}

/// What the webhook of an email that was sent has as its `result`.
#[derive(Debug, Serialize, Deserialize)]
struct Receipt {
    to: String,
    attempts: usize,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt().init();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxDynError> {
    let database = match setting("JOBS_DATABASE") {
        Err(_) if !cfg!(feature = "postgres") => "sqlite://jobs.db?mode=rwc".to_owned(),
        given => given?,
    };
    let pool = Pool::connect(&database).await?;
    let storage = Storage::new(&pool).with_config(config()?);

    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["setup"] => Ok(Storage::setup(&pool).await?),
        ["send", to] => enqueue(storage, to, None).await,
        ["send", to, url] => enqueue(storage, to, Some(url)).await,
        ["work"] => work(storage).await,
        _ => Err(USAGE.into()),
    }
}

async fn enqueue(mut storage: Storage<Email>, to: &str, url: Option<&str>) -> Result<(), BoxDynError> {
    let email = Email { to: to.to_owned(), webhook_url: url.map(str::to_owned) };
    let id = Ulid::generate();
    let task = TaskBuilder::new(email).task_id(TaskId::from_ulid(id)).max_attempts(MAX_ATTEMPTS);
    storage.push_task(task.build()).await?;
    println!("{id}");
    Ok(())
}

async fn work(storage: Storage<Email>) -> Result<(), BoxDynError> {
    let aldaba = Client::new(&setting("ALDABA_URL")?, &setting("ALDABA_TOKEN")?)?;
    let dispatcher = Dispatcher::builder(aldaba, setting("ALDABA_APP")?).build();
    let webhooks = if env::var_os("REPORT_BEFORE_STORED").is_some() {
        JobWebhooks::before_stored(dispatcher)
    } else {
        JobWebhooks::after_stored(dispatcher, storage.clone())
    };

    // Two workers of one name cannot be; a name that is used again too soon after a crash is refused.
    let worker = WorkerBuilder::new(format!("emails-{}", Ulid::generate()))
        .backend(storage.poll_with_interval(LOOK_EVERY))
        .layer(webhooks.clone())
        .build(send);
    worker.run_until(tokio::signal::ctrl_c()).await?;
    webhooks.finish(GOODBYE).await;
    Ok(())
}

async fn send(email: Email, attempt: Attempt) -> Result<Receipt, BoxDynError> {
    let Email { to, .. } = email;
    let attempts = attempt.current();
    match to.split('@').next() {
        Some("third-time") if attempts < 3 => return Err("the mail server is busy".into()),
        Some("nobody") => return Err(format!("{to} does not exist").into()),
        Some("banned") => return Err(AbortError::new(format!("{to} wants no emails")).into()),
        Some("slow") => tokio::time::sleep(Duration::from_secs(2)).await,
        _ => {}
    }
    println!("sent to {to}");
    Ok(Receipt { to, attempts })
}

/// A worker that misses two heartbeats is dead, and its jobs go to others. apalis-postgres waits for ten if nothing is said.
fn config() -> Result<Config, BoxDynError> {
    let seconds = env::var("HEARTBEAT_SECONDS").map_or(Ok(30), |text| text.parse())?;
    let heartbeat = Duration::from_secs(seconds);
    Ok(Config::default().queue("emails").heartbeat_interval(heartbeat).missed_heartbeats(2))
}

fn setting(name: &str) -> Result<String, BoxDynError> {
    env::var(name).map_err(|_| format!("set {name}; README.md says how to get it").into())
}
