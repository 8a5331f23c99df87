//! `aldaba export` and `aldaba erase` as processes.

use crate::support::running::Running;
use serde_json::{Value, json};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

async fn aldaba(folder: &TempDir, url: &str, token: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aldaba"));
    command.args(arguments).args(["--url", url, "--token", token]).env_clear().current_dir(folder.path());
    command.stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
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
    assert!(!folder.path().join("acme.jsonl.part").exists());
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
        assert!(!folder.path().join("acme.jsonl").exists());
    }
}
