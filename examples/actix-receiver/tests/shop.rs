//! The program as a process, spoken to over sockets.

use aldaba_signature::SigningKey;
use rusqlite::Connection;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECRET: &str = "whsec_c2VjcmV0LW9mLXRoZS1hY3RpeC1leGFtcGxlLTMyYnk=";
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

struct Shop {
    process: Child,
    address: SocketAddr,
    lines: mpsc::Receiver<String>,
    folder: tempfile::TempDir,
}

impl Shop {
    fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (process, address, lines) = start(folder.path().join("shop.db"));
        Self { process, address, lines, folder }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn start_again(&mut self) {
        (self.process, self.address, self.lines) = start(self.folder.path().join("shop.db"));
    }

    fn count(&self, query: &str) -> i64 {
        let connection = Connection::open(self.folder.path().join("shop.db")).unwrap();
        connection.busy_timeout(WAIT_TIMEOUT).unwrap();
        connection.query_row(query, [], |row| row.get(0)).unwrap()
    }

    /// Sends an event and gives the status and the body of the answer.
    fn send(&self, id: &str, body: &str) -> (u16, String) {
        deliver(self.address, "POST", &signed(id, body), body)
    }

    fn payments(&self) -> i64 {
        self.count("SELECT COUNT(*) FROM payments")
    }

    fn marks(&self) -> i64 {
        self.count("SELECT COUNT(*) FROM webhook_events")
    }
}

impl Drop for Shop {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn start(database: PathBuf) -> (Child, SocketAddr, mpsc::Receiver<String>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_actix-receiver"));
    command.env("DATABASE", database).env("LISTEN", "127.0.0.1:0").env("WEBHOOK_SECRET", SECRET);
    let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let (heard, lines) = mpsc::channel();
    std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| heard.send(line)));
    let line = lines.recv_timeout(WAIT_TIMEOUT).expect("it says where it listens");
    let address = line.strip_prefix("listening on ").unwrap().parse().unwrap();
    (process, address, lines)
}

fn signed(id: &str, body: &str) -> String {
    signed_at(0, id, body)
}

/// So many seconds from now.
#[expect(clippy::disallowed_methods, reason = "a sender has a clock of its own")]
fn signed_at(seconds: i64, id: &str, body: &str) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64 + seconds;
    let signature = SigningKey::parse(SECRET).unwrap().sign(id, now, body.as_bytes());
    format!("webhook-id: {id}\r\nwebhook-timestamp: {now}\r\nwebhook-signature: {signature}\r\n")
}

fn deliver(to: SocketAddr, method: &str, headers: &str, body: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).unwrap();
    let length = body.len();
    let head = format!(
        "{method} /webhooks HTTP/1.1\r\nhost: shop\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn payment(order: &str) -> String {
    format!(
        r#"{{"type": "payment.success", "order": "{order}", "transaction": "tx-of-{order}", "email": "ann@example.com"}}"#
    )
}

const NEW: &str = r#"{"received":true}"#;
const DUPLICATE: &str = r#"{"received":true,"duplicate":true}"#;

#[test]
fn a_payment_has_its_effect_once_however_often_it_comes() {
    let shop = Shop::open();
    assert_eq!(shop.send("evt_1", &payment("order-1")), (200, NEW.into()));
    assert_eq!(shop.send("evt_1", &payment("order-1")), (200, DUPLICATE.into()));
    assert_eq!((shop.payments(), shop.marks()), (1, 1));
    assert_eq!(shop.count("SELECT COUNT(*) FROM orders WHERE status = 'paid'"), 1);
    assert_eq!(shop.lines.recv_timeout(WAIT_TIMEOUT).unwrap(), "receipt for ann@example.com");
    assert!(shop.lines.try_recv().is_err(), "one receipt");
}

#[test]
fn of_ten_copies_at_once_one_is_processed_and_all_are_answered() {
    let shop = Shop::open();
    let (address, body) = (shop.address, payment("order-1"));
    let headers = signed("evt_race", &body);
    let answers: Vec<_> = std::thread::scope(|scope| {
        let copies: Vec<_> =
            (0..10).map(|_| scope.spawn(|| deliver(address, "POST", &headers, &body))).collect();
        copies.into_iter().map(|copy| copy.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    assert_eq!(answers.iter().filter(|(_, body)| body == NEW).count(), 1);
    assert_eq!((shop.payments(), shop.marks()), (1, 1));
}

#[test]
fn failed_work_is_rolled_back_and_the_event_is_sent_again() {
    let shop = Shop::open();
    let later = payment("order-3");
    let told = r#"{"received":false,"error":"there is no such order yet"}"#;
    assert_eq!(shop.send("evt_early", &later), (500, told.into()));
    assert_eq!((shop.payments(), shop.marks()), (0, 0));
    let connection = Connection::open(shop.folder.path().join("shop.db")).unwrap();
    connection
        .execute("INSERT INTO orders (id, amount, customer_name) VALUES ('order-3', 100, 'Cleo')", [])
        .unwrap();
    assert_eq!(shop.send("evt_early", &later), (200, NEW.into()));
    assert_eq!((shop.payments(), shop.marks()), (1, 1));
}

#[test]
fn a_killed_shop_remembers_what_it_has_answered() {
    let mut shop = Shop::open();
    assert_eq!(shop.send("evt_1", &payment("order-1")), (200, NEW.into()));
    shop.kill();
    shop.start_again();
    assert_eq!(shop.send("evt_1", &payment("order-1")), (200, DUPLICATE.into()));
    assert_eq!(shop.send("evt_2", &payment("order-2")), (200, NEW.into()));
    assert_eq!((shop.payments(), shop.marks()), (2, 2));
}

/// It is said in the same form as everything else.
fn is_refused(answer: (u16, String), status: u16) {
    assert_eq!(answer.0, status, "{answer:?}");
    let said: Value = serde_json::from_str(&answer.1).unwrap_or_default();
    assert!(said["received"] == false && said["error"].is_string(), "{answer:?}");
}

#[test]
fn bad_requests_do_nothing() {
    let shop = Shop::open();
    let body = payment("order-1");
    let post = |headers: &str, body: &str| deliver(shop.address, "POST", headers, body);
    is_refused(deliver(shop.address, "GET", "", ""), 405);
    is_refused(deliver(shop.address, "PUT", &signed("evt_1", &body), &body), 405);
    is_refused(post("", &body), 401);
    is_refused(post(&signed("evt_1", "{}"), &body), 401);
    is_refused(post(&signed_at(-360, "evt_1", &body), &body), 401);
    is_refused(post(&signed_at(360, "evt_1", &body), &body), 401);
    is_refused(post(&signed("evt_1", &body).repeat(2), &body), 401);
    is_refused(post(&signed("evt_1", &body).replace("webhook-id", "x-id"), &body), 400);
    is_refused(post(&signed("two words", &body), &body), 400);
    is_refused(post("", &"x".repeat(1024 * 1024 + 1)), 413);
    is_refused(
        post(
            &signed("evt_1", r#"{"type": "payment.success", "order": 7}"#),
            r#"{"type": "payment.success", "order": 7}"#,
        ),
        500,
    );
    assert_eq!((shop.payments(), shop.marks()), (0, 0));
}

#[test]
fn an_id_with_another_body_is_refused() {
    let shop = Shop::open();
    assert_eq!(shop.send("evt_1", &payment("order-1")), (200, NEW.into()));
    is_refused(shop.send("evt_1", &payment("order-2")), 409);
    assert_eq!((shop.payments(), shop.marks()), (1, 1));
}

#[test]
fn a_database_in_which_it_cannot_write_is_asked_again_and_nothing_gets_lost() {
    let shop = Shop::open();
    let other = Connection::open(shop.folder.path().join("shop.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let answer = shop.send("evt_1", &payment("order-1"));
    other.execute_batch("ROLLBACK").unwrap();
    // That another program is at the same event cannot be told from one that is at anything else.
    assert!([409, 503].contains(&answer.0), "{answer:?}");
    is_refused(answer.clone(), answer.0);
    assert_eq!((shop.payments(), shop.marks()), (0, 0));
    assert_eq!(shop.send("evt_1", &payment("order-1")), (200, NEW.into()));
}

#[test]
fn a_secret_with_which_anybody_could_sign_is_refused_at_the_start() {
    for secret in ["", "whsec_", "whsec_%%%%"] {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_actix-receiver"));
        command.env("DATABASE", folder.path().join("shop.db")).env("LISTEN", "127.0.0.1:0");
        let output = command.env("WEBHOOK_SECRET", secret).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains("WEBHOOK_SECRET"), "{secret:?}: {said}");
    }
}
