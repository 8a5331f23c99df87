//! `aldaba export` and `aldaba erase` as processes.

use crate::support::running::Running;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

fn started(folder: &TempDir, url: &str, token: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aldaba"));
    command.args(arguments).args(["--url", url, "--token", token]).env_clear().current_dir(folder.path());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

async fn ended(child: Child) -> Output {
    tokio::task::spawn_blocking(move || child.wait_with_output().unwrap()).await.unwrap()
}

async fn aldaba(folder: &TempDir, url: &str, token: &str, arguments: &[&str]) -> Output {
    ended(started(folder, url, token, arguments)).await
}

/// The names of the files in a folder.
fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[tokio::test]
async fn an_application_is_exported_to_a_file_and_erased() {
    let server = Running::start().await;
    let folder = tempfile::tempdir().unwrap();
    let (url, token) = (format!("http://{}", server.address), server.client.authorization.clone().unwrap());
    let token = token.trim_start_matches("Bearer ");
    server.client.post("/app", r#"{"name": "Acme", "uid": "acme"}"#).await.expect(201);
    server.message("acme", "a").await;
    let exported = aldaba(&folder, &url, token, &["export", "acme", "-o", "acme.jsonl"]).await;
    assert!(exported.status.success(), "{}", text(&exported.stderr));
    assert!(text(&exported.stderr).contains("exported 4 lines"), "{}", text(&exported.stderr));
    let file = std::fs::read_to_string(folder.path().join("acme.jsonl")).unwrap();
    let last: Value = serde_json::from_str(file.lines().last().unwrap()).unwrap();
    assert_eq!((&last["type"], &last["complete"]), (&json!("summary"), &json!(true)));
    assert_eq!(names(&folder), ["acme.jsonl"]);
    // A file is not overwritten; and the output may be a pipe.
    let again = aldaba(&folder, &url, token, &["export", "acme", "-o", "acme.jsonl"]).await;
    assert_eq!(again.status.code(), Some(2), "{}", text(&again.stderr));
    let piped = aldaba(&folder, &url, token, &["export", "acme"]).await;
    assert_eq!(text(&piped.stdout).lines().count(), 4);

    let counted = aldaba(&folder, &url, token, &["erase", "acme", "--dry-run"]).await;
    assert!(text(&counted.stdout).starts_with("acme has 1 messages"), "{}", text(&counted.stdout));
    let unasked = aldaba(&folder, &url, token, &["erase", "acme"]).await;
    assert_eq!(unasked.status.code(), Some(2));
    assert!(text(&unasked.stderr).contains("nothing was erased"), "{}", text(&unasked.stderr));
    server.client.get("/app/acme").await.expect(200);
    let erased = aldaba(&folder, &url, token, &["erase", "acme", "--yes"]).await;
    assert!(erased.status.success(), "{}", text(&erased.stderr));
    assert!(text(&erased.stdout).contains("acme is erased: 1 messages"), "{}", text(&erased.stdout));
    let gone = aldaba(&folder, &url, token, &["erase", "acme", "--yes"]).await;
    assert_eq!(gone.status.code(), Some(1), "{}", text(&gone.stderr));
}

#[tokio::test]
async fn a_download_that_is_cut_off_fails_and_leaves_no_file_that_looks_whole() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // One breaks off; one ends in order, without the summary.
    tokio::spawn(async move {
        let chunk = "1f\r\n{\"type\":\"export\",\"version\":1 }\n\r\n";
        for end in ["", "0\r\n\r\n"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let _ = stream.read(&mut head).await.unwrap();
            let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}{end}");
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    });
    for _ in 0..2 {
        let folder = tempfile::tempdir().unwrap();
        let cut = aldaba(&folder, &url, "token", &["export", "acme", "-o", "acme.jsonl"]).await;
        assert_eq!(cut.status.code(), Some(69), "{}", text(&cut.stderr));
        assert!(text(&cut.stderr).contains("incomplete"), "{}", text(&cut.stderr));
        assert!(names(&folder).is_empty(), "{:?}", names(&folder));
    }
}

fn chunk(line: &str) -> String {
    format!("{:x}\r\n{line}\n\r\n", line.len() + 1)
}

/// Takes an export's request, and answers with its first line.
async fn begin_export(listener: &TcpListener, line: &str) -> TcpStream {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = vec![0; 4096];
    let _ = stream.read(&mut head).await.unwrap();
    let answer = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk(line));
    stream.write_all(answer.as_bytes()).await.unwrap();
    stream
}

async fn end_export(mut stream: TcpStream) {
    let rest = format!("{}0\r\n\r\n", chunk(r#"{"type":"summary","complete":true}"#));
    stream.write_all(rest.as_bytes()).await.unwrap();
}

#[tokio::test]
async fn of_two_exports_to_one_file_at_once_one_is_whole_and_the_users_files_stay() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("mine"), "mine").unwrap();
    symlink("mine", folder.path().join("acme.jsonl.part")).unwrap();
    let export = || started(&folder, &url, "token", &["export", "acme", "-o", "acme.jsonl"]);
    let first = export();
    let first_stream = begin_export(&listener, r#"{"type":"export","number":1}"#).await;
    let second = export();
    let second_stream = begin_export(&listener, r#"{"type":"export","number":2}"#).await;
    end_export(first_stream).await;
    let first = ended(first).await;
    assert!(first.status.success(), "{}", text(&first.stderr));
    end_export(second_stream).await;
    let second = ended(second).await;
    assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("exists already"), "{}", text(&second.stderr));
    let file = folder.path().join("acme.jsonl");
    let lines = "{\"type\":\"export\",\"number\":1}\n{\"type\":\"summary\",\"complete\":true}\n";
    assert_eq!(std::fs::read_to_string(&file).unwrap(), lines);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(&folder), ["acme.jsonl", "acme.jsonl.part", "mine"]);
    assert_eq!(std::fs::read_to_string(folder.path().join("mine")).unwrap(), "mine");
}

#[tokio::test]
async fn the_application_that_was_counted_is_erased_and_no_other_that_has_its_uid_meanwhile() {
    let server = Running::start().await;
    let authorization = server.client.authorization.clone().unwrap();
    let token = authorization.trim_start_matches("Bearer ");
    let counted = server.client.post("/app", r#"{"name": "Counted", "uid": "acme"}"#).await.expect(201);
    let counted = counted["id"].as_str().unwrap().to_owned();
    // `script` gives the command a terminal, where it asks.
    let command = format!(
        "{} erase acme --url http://{} --token {token}",
        env!("CARGO_BIN_EXE_aldaba"),
        server.address
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", &command, "/dev/null"]);
    let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let asked = tokio::task::spawn_blocking(move || {
        let (mut seen, mut byte) = (Vec::new(), [0]);
        while !text(&seen).ends_with("type acme: ") && output.read(&mut byte).unwrap() == 1 {
            seen.push(byte[0]);
        }
        (text(&seen), output)
    });
    let (seen, mut output) = asked.await.unwrap();
    assert!(seen.contains("acme has 0 messages"), "{seen}");
    server.client.delete("/app/acme").await.expect(204);
    server.client.post("/app", r#"{"name": "Another", "uid": "acme"}"#).await.expect(201);
    input.write_all(b"acme\n").unwrap();
    let rest = tokio::task::spawn_blocking(move || {
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        (text(&rest), child.wait().unwrap())
    });
    let (rest, status) = rest.await.unwrap();
    drop(input);
    assert!(status.success() && rest.contains("acme is erased"), "{seen}{rest}");
    let left = server.client.get("/app/acme").await.expect(200);
    assert_eq!(left["name"], "Another");
    let again = server.client.post(&format!("/app/{counted}/erase"), r#"{"dryRun": true}"#).await;
    again.expect(404);
}
