//! What the other tests count on.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;
use test_servers::{Postgres, Redis};

fn psql(database: &str, statement: &str) -> Result<String, String> {
    let output = Command::new("psql")
        .args(["--no-psqlrc", "--tuples-only", "--no-align", "--command", statement, database])
        .output()
        .expect("psql starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn address(redis: &Redis) -> String {
    redis.url().trim_start_matches("redis://").trim_end_matches('/').to_owned()
}

fn ask(redis: &Redis, command: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address(redis))?;
    stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    stream.write_all(format!("{command}\r\n").as_bytes())?;
    let mut answer = [0; 256];
    let count = stream.read(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer[..count]).trim().to_owned())
}

#[test]
fn a_postgres_keeps_what_was_committed_when_it_crashes() {
    let server = Postgres::start();
    let (one, other) = (server.database(), server.database());
    psql(&one, "CREATE TABLE kept (n INT)").unwrap();
    psql(&one, "INSERT INTO kept VALUES (7)").unwrap();
    server.kill();
    psql(&one, "SELECT 1").unwrap_err();
    server.restart();
    assert_eq!(psql(&one, "SELECT n FROM kept").unwrap(), "7");
    psql(&other, "SELECT n FROM kept").unwrap_err();
}

#[test]
fn a_paused_postgres_takes_connections_and_does_not_answer_until_it_is_resumed() {
    let server = Postgres::start();
    let database = format!("{}?connect_timeout=2", server.database());
    server.pause();
    let why = psql(&database, "SELECT 1").unwrap_err();
    server.resume();
    assert!(why.contains("timeout expired"), "{why}");
    assert_eq!(psql(&database, "SELECT 1").unwrap(), "1");
}

#[test]
fn tests_that_share_a_postgres_have_separate_databases() {
    let (here, there) = (Postgres::shared(), Postgres::shared());
    assert_ne!(here.database(), there.database());
}

#[test]
fn a_redis_keeps_what_it_acknowledged_when_it_crashes() {
    let redis = Redis::start();
    assert_eq!(ask(&redis, "SET kept 7").unwrap(), "+OK");
    redis.kill();
    ask(&redis, "PING").unwrap_err();
    redis.restart();
    assert_eq!(ask(&redis, "GET kept").unwrap(), "$1\r\n7");
}

#[test]
fn a_paused_redis_does_not_answer_until_it_is_resumed() {
    let redis = Redis::start();
    redis.pause();
    ask(&redis, "PING").unwrap_err();
    redis.resume();
    assert_eq!(ask(&redis, "PING").unwrap(), "+PONG");
}

#[test]
fn nothing_is_left_when_they_are_dropped() {
    let (redis, postgres) = (Redis::start(), Postgres::start());
    let (address, database) = (address(&redis), postgres.database());
    drop((redis, postgres));
    TcpStream::connect(address).unwrap_err();
    psql(&database, "SELECT 1").unwrap_err();
}
