//! `aldaba support`: the archive has what a bug report needs, and nothing secret.

use super::command_line::{Started, aldaba, create_token, text};
use crate::support::canaries::Canaries;
use crate::support::client::Client;
use crate::support::waiting::wait_until;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// The files of the archive.
fn extracted(archive: &Path, into: &Path) -> BTreeMap<String, String> {
    std::fs::create_dir_all(into).unwrap();
    let mut tar = Command::new("tar");
    tar.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(into);
    assert!(tar.status().unwrap().success());
    let files = std::fs::read_dir(into.join("aldaba-support")).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    files.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_says_how_the_server_is_and_has_no_secret_no_payload_and_no_customer() {
    let mut canaries = Canaries::default();
    let folder = tempfile::tempdir().unwrap();
    let (jwt, password) = (canaries.plant("jwt secret of the server"), canaries.plant("mail password"));
    let (jwt, encryption_key) = (format!("{jwt}{jwt}"), "c4".repeat(32));
    canaries.add("encryption key", &encryption_key);
    let (proxy, headers, metrics_token) = (
        canaries.plant("proxy password"),
        canaries.plant("collector header"),
        canaries.plant("metrics token"),
    );
    let (sender, operator) = (canaries.plant("mail sender"), canaries.plant("operator"));
    let settings: [(&str, String); 10] = [
        ("ALDABA_JWT_SECRET", jwt.clone()),
        ("ALDABA_ENCRYPTION_KEY", encryption_key),
        ("ALDABA_SMTP_URL", format!("smtp://user:{password}@127.0.0.1:1")),
        ("ALDABA_MAIL_FROM", format!("{sender}@example.com")),
        ("ALDABA_OPERATOR_EMAIL", format!("{operator}@example.com")),
        ("ALDABA_EGRESS_PROXY", format!("http://user:{proxy}@127.0.0.1:1")),
        ("ALDABA_OTLP_HEADERS", format!("x-key={headers}")),
        ("ALDABA_METRICS_TOKEN", metrics_token),
        ("ALDABA_METRICS_LISTEN", "127.0.0.1:0".into()),
        ("ALDABA_LOG", "debug".into()),
    ];
    let with = |command: &mut Command| -> std::process::Output {
        command.envs(settings.iter().map(|(name, value)| (*name, value.as_str()))).output().unwrap()
    };
    let log = folder.path().join("log");
    let mut serve = aldaba(folder.path());
    serve.args(["serve", "--listen", "127.0.0.1:0"]);
    serve.envs(settings.iter().map(|(name, value)| (*name, value.as_str())));
    let (_server, hello) = Started::logging(&mut serve, &log);
    let address = hello[0].strip_prefix("Aldaba listens on http://").unwrap().parse().unwrap();
    let made = with(aldaba(folder.path()).args(["token", "create"]));
    let token = text(&made.stdout).trim().to_owned();
    canaries.add("token", &token);
    let client = Client { address, authorization: None }.with_token(&token);
    let (name, uid) = (canaries.plant("customer"), canaries.plant("uid"));
    client.post("/app", json!({"name": name, "uid": uid}).to_string()).await.expect(201);
    let secret = format!("whsec_{}", STANDARD.encode(canaries.plant("endpoint secret of 24 bytes")));
    canaries.add("endpoint secret as text", &secret);
    let (url, header) = (canaries.plant("endpoint url"), canaries.plant("endpoint header"));
    let endpoint = json!({
        "url": format!("http://{url}:{url}@{url}.invalid/{url}?{url}"), "secret": secret, "policy": "job-status",
        "headers": {"x-own": header}, "ownerEmail": format!("{uid}@example.com"),
    });
    client.post(&format!("/app/{uid}/endpoint"), endpoint.to_string()).await.expect(201);
    let payload = canaries.plant("payload");
    let message = json!({"eventType": "a", "payload": {"a": payload}, "eventId": payload});
    client.post(&format!("/app/{uid}/msg"), message.to_string()).await.expect(202);
    wait_until("an attempt is in the log", async || {
        std::fs::read_to_string(&log).unwrap().contains("Webhook delivery failed")
    })
    .await;
    // What another program may have written beside our own lines.
    let stray = std::fs::read_to_string(&log).unwrap()
        + &format!("curl -H 'Authorization: Bearer {token}' http://user:{password}@host/{secret}\n");
    std::fs::write(folder.path().join("stray.log"), stray).unwrap();

    let archive = folder.path().join("report.tar");
    let output =
        with(aldaba(folder.path()).args(["support", "--output", "report.tar", "--log", "stray.log"]));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(std::fs::metadata(&archive).unwrap().permissions().mode() & 0o777, 0o600);
    let files = extracted(&archive, &folder.path().join("extracted"));
    let outputs: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let found = canaries.found_in(&outputs);
    assert!(found.is_empty(), "{} found:\n{}", found.len(), found.join("\n"));

    let json = |name: &str| serde_json::from_str::<Value>(&files[name]).unwrap();
    assert_eq!(json("versions.json")["aldaba"], env!("CARGO_PKG_VERSION"));
    let configuration = json("configuration.json");
    let setting = |key: &str| {
        let all = configuration.as_array().unwrap();
        all.iter().find(|setting| setting["setting"] == key).unwrap().clone()
    };
    assert_eq!(setting("log"), json!({"setting": "log", "value": "debug", "source": "variable ALDABA_LOG"}));
    for hidden in ["jwt_secret", "encryption_key", "smtp_url", "egress_proxy", "operator_email"] {
        assert_eq!(setting(hidden)["value"], "(hidden)", "{hidden}");
    }
    assert_eq!(setting("in_flight"), json!({"setting": "in_flight", "value": "4096", "source": "default"}));
    assert_eq!(json("tables.json")["message"], 1);
    assert_eq!(json("health.json")["database"]["status"], "ok");
    assert_eq!(json("ready.json")["status"], "ready");
    assert_eq!(json("files.json")["serverRuns"], true);
    assert!(json("doctor.json")["findings"].as_array().unwrap().len() > 10);
    assert!(files["schema.sql"].contains("CREATE TABLE message"));
    assert!(files["log.txt"].contains("Webhook delivery failed"), "the log stays readable");
    assert!(files["README.txt"].contains("Look through it"));

    let again = with(aldaba(folder.path()).args(["support", "--output", "report.tar"]));
    assert!(
        !again.status.success() && text(&again.stderr).contains("Name another file"),
        "nothing is overwritten"
    );
}

#[test]
fn secrets_of_settings_passwords_and_mail_addresses_are_taken_out_of_the_log() {
    let mut canaries = Canaries::default();
    let folder = tempfile::tempdir().unwrap();
    let mail = canaries.plant("mail password");
    let (user, header) = (canaries.plant("proxy user"), canaries.plant("collector header"));
    let (bearer, basic, password) =
        (canaries.plant("bearer"), canaries.plant("basic"), canaries.plant("password"));
    let (query, person) = (canaries.plant("token in a query"), canaries.plant("person"));
    std::fs::write(folder.path().join("a.toml"), format!("otlp_headers = 'x-key={header}'\n")).unwrap();
    let settings = [
        ("ALDABA_SMTP_URL", format!("smtp://user:{mail}%40{mail}@127.0.0.1:1")),
        ("ALDABA_MAIL_FROM", "hooks@example.com".into()),
        ("ALDABA_EGRESS_PROXY", format!("http://{user}:pw%407@127.0.0.1:1")),
    ];
    let log = format!(
        "login {mail}@{mail} failed\nlogin {mail}%40{mail} failed\nproxy says pw@7, pw%407\n\
         http://{user}:a@host {header}\nAuthorization: Bearer {bearer}\nAuthorization: Basic {basic}\n\
         password={password} token={query}\nto {person}@example.com: stays\n"
    );
    std::fs::write(folder.path().join("log"), log).unwrap();
    let mut command = aldaba(folder.path());
    command.args(["support", "--output", "a.tar", "--log", "log", "--config", "a.toml"]);
    let output = command.envs(settings).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("read it before you send it"), "{}", text(&output.stdout));
    let files = extracted(&folder.path().join("a.tar"), &folder.path().join("extracted"));
    let outputs: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let found = canaries.found_in(&outputs);
    assert!(found.is_empty(), "{} found:\n{}", found.len(), found.join("\n"));
    let log = &files["log.txt"];
    assert!(log.contains("to (hidden)@example.com: stays"), "{log}");
    assert!(
        log.starts_with("login (hidden) failed\nlogin (hidden) failed\nproxy says (hidden), (hidden)\n"),
        "{log}"
    );
}

#[test]
fn the_archive_has_the_metrics_of_a_listener_with_tls() {
    let folder = tempfile::tempdir().unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".into()]).unwrap().self_signed(&key).unwrap();
    std::fs::write(folder.path().join("certificate.pem"), certificate.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let settings = [
        ("ALDABA_TLS_CERTIFICATE", "certificate.pem"),
        ("ALDABA_TLS_KEY", "key.pem"),
        ("ALDABA_METRICS_LISTEN", free.as_str()),
    ];
    let (_server, _) = Started::serve(folder.path(), &settings);
    let mut command = aldaba(folder.path());
    let output = command.args(["support", "--output", "a.tar"]).envs(settings).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let files = extracted(&folder.path().join("a.tar"), &folder.path().join("extracted"));
    assert!(files["metrics.txt"].contains("aldaba_alerts_firing{"), "{}", files["metrics.txt"]);
}

#[test]
fn an_archive_that_cannot_be_written_whole_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    // The system refuses what is longer than a block, as a full disk does.
    let command = "trap '' XFSZ; ulimit -f 1; exec \"$0\" support --output a.tar";
    let mut shell = Command::new("sh");
    shell.args(["-c", command, env!("CARGO_BIN_EXE_aldaba")]).current_dir(folder.path());
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("cannot write a.tar"), "{}", text(&output.stderr));
    assert!(!folder.path().join("a.tar").exists());
}

#[test]
fn an_archive_of_a_stopped_or_damaged_folder_is_made_too() {
    let folder = tempfile::tempdir().unwrap();
    assert!(aldaba(folder.path()).arg("init").status().unwrap().success());
    create_token(folder.path(), &[]);
    let run = |name: &str| {
        let output = aldaba(folder.path()).args(["support", "--output", name]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        extracted(&folder.path().join(name), &folder.path().join(format!("{name}.d")))
    };
    let files = run("stopped.tar");
    assert!(files["files.json"].contains("\"serverRuns\": false") && !files.contains_key("health.json"));
    std::fs::write(folder.path().join("aldaba-data/aldaba.db"), "no database at all").unwrap();
    let files = run("damaged.tar");
    assert!(files["doctor.json"].contains("\"status\": \"problem\""), "{}", files["doctor.json"]);
    assert!(!files.contains_key("tables.json"));
}
