//! `aldaba token` as people run it, with a server and without.

use crate::commands::command_line::{Started, aldaba, create_token, text};
use crate::support::client::Client;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// Runs it: its exit code, and what it has said on both channels.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = aldaba(folder).arg("token").args(arguments).output().unwrap();
    (status.code().unwrap(), text(&stdout), text(&stderr))
}

/// The key that a command has printed, alone.
fn made(folder: &Path, arguments: &[&str]) -> (String, String) {
    let (code, out, err) = run(folder, &[&["create"], arguments].concat());
    assert_eq!(code, 0, "{err}");
    let key = out.strip_suffix('\n').expect("one line").to_owned();
    assert!(key.starts_with("aldaba_") && !key.contains(char::is_whitespace), "{key}");
    assert!(!err.contains(&key), "the key is on standard output alone");
    (key, err)
}

fn client(hello: &[String], token: &str) -> Client {
    let address = hello[0].strip_prefix("Aldaba listens on http://").unwrap().parse().unwrap();
    Client { address, authorization: None }.with_token(token)
}

fn prefix(key: &str) -> &str {
    key.split('_').nth(1).unwrap()
}

#[tokio::test]
async fn keys_are_made_listed_and_revoked_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    assert!(aldaba(folder.path()).arg("init").status().unwrap().success());
    let (key, about) = made(folder.path(), &["--name", "the shop", "--scope", "send", "--expires", "30d"]);
    assert!(about.contains("`the shop`") && about.contains("scope send"), "{about}");
    let (plain, _) = made(folder.path(), &["--scope", "read"]);
    let (code, list, _) = run(folder.path(), &["list"]);
    assert_eq!(code, 0);
    assert!(list.contains(prefix(&key)) && list.contains(prefix(&plain)), "{list}");
    assert!(!list.contains(&key) && !list.contains(&plain), "{list}");
    let shop = list.lines().find(|line| line.contains("the shop")).unwrap();
    assert!(shop.contains("send") && shop.contains("all") && shop.contains("never"), "{shop}");
    let id = list.split_whitespace().find(|word| word.starts_with("key_")).unwrap();
    assert_eq!(run(folder.path(), &["revoke", id]).0, 0);
    assert_eq!(run(folder.path(), &["revoke", prefix(&plain)]).0, 0);
    let (code, _, err) = run(folder.path(), &["revoke", prefix(&plain)]);
    assert_eq!(code, 1);
    assert!(err.contains("there is no API key"), "{err}");
    assert_eq!(run(folder.path(), &["list"]).1.lines().count(), 1, "only the head");

    // A token created without a server is valid for it, with its description.
    let (kept, _) = made(folder.path(), &["--name", "kept"]);
    let (_server, hello) = Started::serve(folder.path(), &[]);
    let admin = client(&hello, &kept);
    admin.get("/app").await.expect(200);
    client(&hello, &key).get("/auth/whoami").await.expect(401);
    let audit = admin.get("/audit?action=api_key.create").await.expect(200);
    assert_eq!(audit["data"][0]["actor"]["kind"], "command_line");
}

#[tokio::test]
async fn keys_are_made_listed_and_revoked_beside_a_running_server() {
    let folder = tempfile::tempdir().unwrap();
    // On a port that no setting names: the folder knows it.
    let (_server, hello) = Started::serve(folder.path(), &[]);
    let (admin, _) = made(folder.path(), &["--name", "admin"]);
    let admin = client(&hello, &admin);
    let app = admin.post("/app", r#"{"name":"a","uid":"shop"}"#).await.expect(201);
    let (key, about) = made(folder.path(), &["--scope", "send", "--app", "shop"]);
    assert!(about.contains(app["id"].as_str().unwrap()), "{about}");
    let sender = client(&hello, &key);
    sender.post("/app/shop/msg", r#"{"eventType":"a","payload":{}}"#).await.expect(202);
    let (code, list, err) = run(folder.path(), &["list"]);
    assert_eq!(code, 0, "{err}");
    assert!(list.contains(prefix(&key)) && list.contains("made at the command line"), "{list}");
    assert_eq!(run(folder.path(), &["revoke", prefix(&key)]).0, 0);
    sender.post("/app/shop/msg", r#"{"eventType":"a","payload":{}}"#).await.expect(401);
    let (code, _, err) = run(folder.path(), &["revoke", "nothing"]);
    assert_eq!((code, err.contains("there is no API key `nothing`")), (1, true), "{err}");
    let (code, _, err) = run(folder.path(), &["create", "--app", "nowhere"]);
    assert_ne!(code, 0);
    assert!(err.contains("There is no such application"), "{err}");
    assert_eq!(code, 1, "as without a server");
    let audit = admin.get("/audit?actor=command_line").await.expect(200);
    let actions: Vec<_> =
        audit["data"].as_array().unwrap().iter().filter_map(|row| row["action"].as_str()).collect();
    assert_eq!(actions, ["api_key.revoke", "api_key.create", "api_key.create"]);
}

#[tokio::test]
async fn without_options_a_signed_token_is_printed_as_ever() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, hello) = Started::serve(folder.path(), &[]);
    client(&hello, &create_token(folder.path(), &[])).get("/app").await.expect(200);
    let list: Value = client(&hello, &create_token(folder.path(), &["--data", "aldaba-data"]))
        .get("/api-key")
        .await
        .expect(200);
    assert_eq!(list["data"], serde_json::json!([]), "no key was made");
}

#[test]
fn impossible_requests_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    assert!(aldaba(folder.path()).arg("init").status().unwrap().success());
    for (arguments, said) in [
        (&["create", "--scope", "root"][..], "admin, send or read"),
        (&["create", "--expires", "soon"][..], "30d"),
        (&["create", "--expires", "0s"][..], "30d"),
        (&["create", "--name", ""][..], "1 to 256"),
        (&["create", "--name", "a\nb"][..], "control characters"),
        (&["create", "--app", "nowhere"][..], "there is no application `nowhere`"),
        (&["create", "--url", "http://127.0.0.1:1"][..], "--name"),
        (&["list", "--data", "nowhere"][..], "there is no Aldaba installation in "),
        (&["create", "--expires", "forever"][..], "never"),
        (&["create", "--signed", "--app", "a"][..], "cannot be used with"),
        (&["revoke", "../etc"][..], "there is no API key"),
        (&["list", "--url", "http://127.0.0.1:1", "--token", "x"][..], "cannot reach"),
    ] {
        let (code, out, err) = run(folder.path(), arguments);
        assert_ne!(code, 0, "{arguments:?}");
        assert_eq!(out, "", "{arguments:?}");
        assert!(err.contains(said), "{arguments:?}: {err}");
    }
}

#[tokio::test]
async fn no_log_holds_a_key_or_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = aldaba(folder.path());
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("ALDABA_LOG", "trace");
    let (server, hello) = Started::logging(&mut command, &log);
    let (key, _) = made(folder.path(), &["--name", "the shop"]);
    let admin = client(&hello, &key);
    let app = admin.post("/app", r#"{"name":"a"}"#).await.expect(201)["id"].as_str().unwrap().to_owned();
    let portal = admin.post(&format!("/auth/app-portal-access/{app}"), "{}").await.expect(200);
    let token = portal["token"].as_str().unwrap();
    client(&hello, token).get(&format!("/app/{app}")).await.expect(200);
    let wrong = format!("{key}x");
    client(&hello, &wrong).get("/app").await.expect(401);
    let signed = create_token(folder.path(), &[]);
    client(&hello, &signed).get("/app").await.expect(200);
    drop(server);
    let logged = std::fs::read_to_string(&log).unwrap();
    assert!(logged.contains("listening"), "it logs: {logged}");
    let last = |text: &str, sign: char| text.rsplit(sign).next().unwrap().to_owned();
    for secret in [last(&key, '_'), last(token, '.'), last(&signed, '.')] {
        assert!(secret.len() >= 40 && !logged.contains(&secret), "the log holds {secret}");
    }
}

#[test]
fn a_token_for_a_folder_without_an_installation_is_refused_and_nothing_is_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    for data in ["aldaba-data", "empty", "a/b"] {
        for options in [&[][..], &["--name", "a"]] {
            let (code, out, err) = run(folder.path(), &[&["create", "--data", data], options].concat());
            assert_eq!((code, out.as_str()), (1, ""), "{err}");
            let full = folder.path().canonicalize().unwrap().join(data).display().to_string();
            assert!(
                err.contains(&format!("there is no Aldaba installation in {full}: it has no aldaba.db")),
                "{err}"
            );
            for advice in
                [&format!("`aldaba serve --data {full}`"), "`aldaba init --data", "--data or ALDABA_DATA"]
            {
                assert!(err.contains(advice), "{advice}: {err}");
            }
        }
    }
    assert!(!folder.path().join("aldaba-data").exists() && !folder.path().join("a").exists());
    assert_eq!(std::fs::read_dir(folder.path().join("empty")).unwrap().count(), 0);
    // With the secret at hand no folder is needed: it may be another machine's.
    let mut command = aldaba(folder.path());
    command.args(["token", "create"]).env("ALDABA_JWT_SECRET", "a secret that is long enough for tokens");
    assert!(command.status().unwrap().success());
}

#[test]
fn a_server_with_a_secret_of_its_own_does_not_get_tokens_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let secret = ("ALDABA_JWT_SECRET", "a secret that is long enough for tokens");
    assert!(aldaba(folder.path()).arg("init").env(secret.0, secret.1).status().unwrap().success());
    let (code, out, err) = run(folder.path(), &["create"]);
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.contains("has no jwt.secret") && err.contains("set ALDABA_JWT_SECRET"), "{err}");
    assert!(!folder.path().join("aldaba-data/jwt.secret").exists());
}

/// The claims of an organization token, and its description.
fn signed(folder: &Path, arguments: &[&str]) -> (String, Value, String) {
    use base64::Engine as _;
    let (code, out, err) = run(folder, &[&["create"], arguments].concat());
    assert_eq!(code, 0, "{err}");
    let token = out.strip_suffix('\n').expect("one line").to_owned();
    assert!(!token.contains(char::is_whitespace) && !err.contains(&token), "alone on standard output");
    let claims = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap()).unwrap();
    (token, serde_json::from_slice(&claims).unwrap(), err)
}

#[tokio::test]
async fn an_organization_token_describes_itself_and_expires_after_a_year_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, hello) = Started::serve(folder.path(), &[]);
    let lifetime = |claims: &Value| Some(claims["exp"].as_i64()? - claims["iat"].as_i64()?);
    let (_, claims, err) = signed(folder.path(), &[]);
    assert_eq!(lifetime(&claims), Some(365 * 86_400));
    assert!(err.starts_with("Organization token for org_23rb8YdGqMT0qIzpgGwdXfHirMu: scope admin "), "{err}");
    let whoami = client(&hello, &signed(folder.path(), &[]).0).get("/auth/whoami").await.expect(200);
    let end = whoami["expiresAt"].as_str().unwrap()[..16].replace('T', " ");
    assert!(err.contains(&format!("expires {}", &end[..10])), "{end}: {err}");
    let (_, claims, _) = signed(folder.path(), &["--signed", "--expires", "90d"]);
    assert_eq!(lifetime(&claims), Some(90 * 86_400));
    let (endless, claims, err) = signed(folder.path(), &["--signed", "--expires", "never"]);
    assert_eq!(claims.get("exp"), None);
    assert!(err.contains("never expires"), "{err}");
    let whoami = client(&hello, &endless).get("/auth/whoami").await.expect(200);
    assert_eq!((&whoami["expiresAt"], &whoami["scope"]), (&Value::Null, &Value::from("admin")));
}

#[tokio::test]
async fn the_name_of_an_organization_token_is_in_the_audit_log() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, hello) = Started::serve(folder.path(), &[]);
    let (named, _, err) = signed(folder.path(), &["--signed", "--name", "the deploy script"]);
    assert!(err.starts_with("Organization token `the deploy script` for "), "{err}");
    client(&hello, &named).post("/app", r#"{"name":"a"}"#).await.expect(201);
    let nameless = client(&hello, &create_token(folder.path(), &[]));
    nameless.post("/app", r#"{"name":"b"}"#).await.expect(201);
    let audit = nameless.get("/audit?actor=organization_token").await.expect(200);
    let names: Vec<_> = audit["data"].as_array().unwrap().iter().map(|row| &row["actor"]["name"]).collect();
    assert_eq!(names, [&Value::Null, &Value::from("the deploy script")]);
}

#[tokio::test]
async fn a_token_in_use_that_expires_soon_is_in_the_log_and_in_health() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let mut command = aldaba(folder.path());
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    let (server, hello) = Started::logging(&mut command, &log);
    let (fresh, _, _) = signed(folder.path(), &["--signed", "--name", "fresh"]);
    let health = async || client(&hello, &fresh).get("/health").await.expect(200)["tokens"].clone();
    client(&hello, &fresh).get("/app").await.expect(200);
    let (brief, _, _) = signed(folder.path(), &["--signed", "--name", "brief", "--expires", "30d"]);
    client(&hello, &brief).get("/app").await.expect(200);
    assert_eq!(health().await, serde_json::json!({"status": "ok", "expiring": 0, "firstExpiresAt": null}));
    // Made a year ago but for ten days.
    let secret = std::fs::read_to_string(folder.path().join("aldaba-data/jwt.secret")).unwrap();
    let key = jsonwebtoken::EncodingKey::from_secret(secret.trim().as_bytes());
    let now = i64::try_from(jsonwebtoken::get_current_timestamp()).unwrap();
    let claims = serde_json::json!({
        "sub": aldaba::DEFAULT_ORGANIZATION, "name": "the old one", "iat": now - 355 * 86_400, "exp": now + 10 * 86_400,
    });
    let old = jsonwebtoken::encode(&jsonwebtoken::Header::default(), &claims, &key).unwrap();
    for _ in 0..3 {
        client(&hello, &old).get("/app").await.expect(200);
    }
    let tokens = health().await;
    assert_eq!((&tokens["status"], &tokens["expiring"]), (&Value::from("expiring"), &Value::from(1)));
    assert!(tokens["firstExpiresAt"].is_string(), "{tokens}");
    drop(server);
    let logged = std::fs::read_to_string(&log).unwrap();
    let warnings: Vec<_> = logged.lines().filter(|line| line.contains("expires soon")).collect();
    assert_eq!(warnings.len(), 1, "once, and none for the others: {logged}");
    assert!(warnings[0].contains("WARN") && warnings[0].contains("the old one"), "{}", warnings[0]);
}
