//! Lists of attempts and statistics of an endpoint with a million attempts, compared with one with a thousand.

use crate::Result;
use crate::api::Api;
use crate::clock::{self, millis};
use crate::numbers::{counted, percentile};
use crate::past::{Past, RARE};
use crate::report::{Bar, Report, Sheet};
use crate::suite::Suite;
use aldaba_delivery::Timestamp;
use serde_json::json;

pub(super) const NAME: &str = "history";

const MANY: usize = 1_000_000;
const SMALL_HISTORY: usize = 1_000;
/// Repetitions of each query in a round.
const REQUESTS: usize = 500;
const MAX_ROUNDS: usize = 3;
const MAX_MS: f64 = 10.0;
/// The organization of tokens of the command line.
const ORGANIZATION: &str = "org_23rb8YdGqMT0qIzpgGwdXfHirMu";

/// The queries, by name.
const QUESTIONS: [(&str, &str); 8] = [
    ("50 attempts", "/attempt/endpoint/{e}?limit=50"),
    ("50 from the middle", "/attempt/endpoint/{e}?limit=50&iterator={middle}"),
    ("failed ones", "/attempt/endpoint/{e}?limit=50&status=2"),
    ("of a rare event type", "/attempt/endpoint/{e}?limit=50&event_types=invoice.disputed"),
    ("of a rare channel, from the middle", "/attempt/endpoint/{e}?limit=50&channel=rare&iterator={middle}"),
    ("50 messages of the endpoint", "/endpoint/{e}/msg?limit=50"),
    ("statistics of 28 days", "/endpoint/{e}/stats"),
    ("statistics by event type", "/stats/attempts"),
];

struct Side {
    name: String,
    questions: Vec<(&'static str, String)>,
}

pub(super) fn run(suite: &Suite) -> Result<Report> {
    let (many, few) = (suite.count(MANY, 2 * SMALL_HISTORY), SMALL_HISTORY);
    let requests = suite.count(REQUESTS, 20);
    suite.say(NAME, &format!("writing {} attempts", counted(many)));
    let folder = suite.empty_folder()?;
    let mut made = Vec::new();
    suite.fill(&folder, async |api| {
        for attempts in [few, many] {
            let app = api.make("/app", json!({"name": "bench"}).to_string()).await?;
            let body = json!({"url": "https://receiver.invalid/"}).to_string();
            let endpoint = api.make(&format!("/app/{app}/endpoint"), body).await?;
            made.push((attempts, app, endpoint));
        }
        Ok(())
    })?;
    let now = Timestamp::from_millis(clock::unix_seconds() * 1000);
    let mut sides = Vec::new();
    for (attempts, app, endpoint) in &made {
        let past = Past { org: ORGANIZATION, app, endpoint, attempts: *attempts, now };
        suite.load.block_on(past.write(folder.path()))?;
        let fill = |path: &str| {
            let path = path.replace("{e}", endpoint).replace("{middle}", &past.middle().to_string());
            format!("/app/{app}{path}")
        };
        let questions = QUESTIONS.map(|(name, path)| (name, fill(path))).to_vec();
        sides.push(Side { name: counted(*attempts), questions });
    }
    let server = suite.launch(&folder).start()?;
    let mut sheet = Sheet::default();
    for round in 0..suite.rounds_up_to(MAX_ROUNDS) {
        for number in 0..QUESTIONS.len() {
            // Alternates which endpoint is queried first.
            let mut order: Vec<&Side> = sides.iter().collect();
            order.rotate_left(round % 2);
            for side in order {
                let (question, path) = &side.questions[number];
                let took = suite.load.block_on(ask(server.api()?, path, requests))?;
                for (name, percent) in [("p50", 50.0), ("p99", 99.0)] {
                    let row = format!("{} of {}, {name} ms", question, side.name);
                    sheet.put(&row, 2, percentile(&took, percent));
                }
            }
        }
        suite.progress(NAME, round, &sheet);
    }
    let bar = |question: &str| {
        let row = format!("{question} of {}, p99 ms", sides[1].name);
        Bar::at_most(&format!("{row}, median"), MAX_MS, sheet.median(&row), 2)
    };
    let bars = QUESTIONS.iter().map(|(question, _)| bar(question)).collect();
    let about = format!(
        "An endpoint with {} attempts over 28 days and one with {}, in one database; one of {RARE} attempts has failed, and \
         one of {RARE} is of another event type and channel. {requests} requests of each kind in a round, one after the \
         other over one connection, by turns. A page of a filter that finds little ends early, so that it has fewer items.",
        counted(many),
        counted(few)
    );
    Ok(Report { about, sheet, bars })
}

/// The duration of each answer, in milliseconds.
async fn ask(api: &Api, path: &str, requests: usize) -> Result<Vec<f64>> {
    let mut connection = api.connect().await?;
    let mut took = Vec::with_capacity(requests);
    for _ in 0..requests {
        let asked = clock::now();
        let answer = connection.get(path).await?;
        took.push(millis(clock::now() - asked));
        if answer.status != 200 {
            return Err(format!("{}: {}", answer.status, String::from_utf8_lossy(&answer.body)).into());
        }
        if !connection.is_fresh() {
            connection = api.connect().await?;
        }
    }
    Ok(took)
}
