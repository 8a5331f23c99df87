//! `aldaba policy` as people run it, with a server and without.

use crate::commands::command_line::{Started, aldaba, create_token, text};
use crate::support::client::Client;
use crate::support::secure_receiver::{Authority, SecureReceiver};
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn policy(name: &str, delays: &[&str]) -> Value {
    json!({"name": name, "schedule": {"type": "list", "delays": delays}, "jitter": {"type": "none"}})
}

/// A server and its address.
fn serve(folder: &Path, more: &[(&str, &str)]) -> (Started, String) {
    let (server, hello) = Started::serve(folder, more);
    let url = hello[0].strip_prefix("Aldaba listens on ").expect("the address").to_owned();
    (server, url)
}

fn client(folder: &Path, url: &str) -> Client {
    let nobody =
        Client { address: url.strip_prefix("http://").unwrap().parse().unwrap(), authorization: None };
    nobody.with_token(&create_token(folder, &[]))
}

/// Runs it: its exit code, and what it has said on both channels.
fn run(command: &mut Command) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command.output().unwrap();
    (status.code().unwrap(), text(&stdout), text(&stderr))
}

#[tokio::test]
async fn a_file_is_imported_and_only_what_differs_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = serve(folder.path(), &[]);
    let api = client(folder.path(), &url);
    let write = |value: Value| std::fs::write(folder.path().join("p.json"), value.to_string()).unwrap();
    let import = |more: &[&str]| {
        run(aldaba(folder.path()).args(["policy", "import", "p.json", "--url", &url]).args(more))
    };
    write(json!([policy("a", &["1s"]), policy("b", &["1s", "1m"])]));
    let (code, out, err) = import(&["--dry-run"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(
        out,
        "would create a: 2 attempts, the last after 1s\nwould create b: 3 attempts, the last after 1m 1s\n\
         2 created, 0 replaced, 0 unchanged (dry run: nothing was changed)\n"
    );
    api.get("/policy/a").await.expect(404);

    // Without a token: the folder of the server is here, and its secret makes one.
    assert_eq!(import(&[]).0, 0);
    assert_eq!(api.get("/policy/b").await.expect(200)["limit"]["attempts"], 3);
    write(json!([policy("a", &["1s"]), policy("b", &["5s"]), policy("c", &["1s"])]));
    let (code, out, _) = import(&[]);
    assert_eq!(code, 0);
    assert_eq!(
        out.lines().collect::<Vec<_>>(),
        [
            "unchanged a: 2 attempts, the last after 1s",
            "replaced b: 2 attempts, the last after 5s (was: 3 attempts, the last after 1m 1s)",
            "created c: 2 attempts, the last after 1s",
            "1 created, 1 replaced, 1 unchanged",
        ]
    );
    assert_eq!(api.get("/policy/b").await.expect(200)["schedule"]["delays"], json!(["5s"]));

    // A list of the API can be imported unchanged, also from standard input.
    let listed = api.get("/policy").await.expect(200).to_string();
    let mut child = aldaba(folder.path())
        .args(["policy", "import", "-"])
        .env("ALDABA_URL", &url)
        .env("ALDABA_TOKEN", create_token(folder.path(), &[]))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(listed.as_bytes()).unwrap();
    let Output { status, stdout, .. } = child.wait_with_output().unwrap();
    assert!(status.success());
    assert!(text(&stdout).ends_with("0 created, 0 replaced, 3 unchanged\n"), "{}", text(&stdout));
}

#[tokio::test]
async fn an_organizations_own_policies_are_listed_shown_and_previewed() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = serve(folder.path(), &[]);
    let api = client(folder.path(), &url);
    api.post("/policy", policy("patient", &["10s", "1h"]).to_string()).await.expect(201);
    let ask = |arguments: &[&str]| run(aldaba(folder.path()).arg("policy").args(arguments));
    let (code, out, _) = ask(&["list", "--url", &url]);
    assert_eq!((code, out.lines().count()), (0, 7));
    let line = out.lines().find(|line| line.starts_with("patient ")).expect("its line");
    assert_eq!(line.split_whitespace().collect::<Vec<_>>(), ["patient", "3", "1h", "30s"]);
    let (code, out, _) = ask(&["show", "patient", "--url", &url]);
    assert_eq!(code, 0);
    let shown: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(shown["schedule"]["delays"], json!(["10s", "1h"]));
    let (code, out, _) = ask(&["preview", "patient", "--outage", "15s", "--url", &url]);
    assert_eq!(code, 0);
    assert!(out.contains("Arrives after 1h, "), "{out}");
    // Without a server and a folder there are the built-in ones.
    let nowhere = tempfile::tempdir().unwrap();
    let (code, out, err) = run(aldaba(nowhere.path()).args(["policy", "show", "patient"]));
    assert_eq!((code, out.as_str()), (1, ""));
    assert!(err.starts_with("aldaba: there is no policy `patient`; there are job-status"), "{err}");
}

#[tokio::test]
async fn a_server_behind_tls_is_reached_where_its_issuer_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let receiver = SecureReceiver::answering(&authority, 200).await;
    let url = format!("https://localhost:{}", receiver.port);
    let list = async |issuer: Option<PathBuf>| {
        let mut command = aldaba(folder.path());
        command.args(["policy", "list", "--token", "x", "--url", &url]);
        command.envs(issuer.map(|file| ("ALDABA_CA_FILE", file)));
        tokio::task::spawn_blocking(move || run(&mut command)).await.unwrap()
    };
    let (code, _, err) = list(Some(authority.file())).await;
    assert_eq!(code, 69);
    assert!(err.ends_with("answers with 200 OK, and not as Aldaba would\n"), "{err}");
    let (code, _, err) = list(None).await;
    assert_eq!(code, 69);
    assert!(err.contains("cannot reach a server") && err.contains("UnknownIssuer"), "{err}");
}

#[test]
fn errors_in_a_file_are_reported_without_a_request_to_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = json!([policy("a", &["1s"]), policy("b", &["soon"]), policy("quick", &["1s"])]);
    std::fs::write(folder.path().join("p.json"), wrong.to_string()).unwrap();
    let (code, out, err) = run(aldaba(folder.path()).args(["policy", "import", "p.json"]));
    assert_eq!((code, out.as_str()), (65, ""));
    assert_eq!(
        err,
        "aldaba: p.json cannot be imported:\n\
         b: schedule.delays[0]: expected a duration such as \"500ms\", \"5s\", \"15m\", \"2h\" or \"7d\", \
         not \"soon\"\n\
         quick: is built in and cannot be changed; give it another name\n"
    );
    let (code, _, same) = run(aldaba(folder.path()).args(["policy", "preview", "p.json"]));
    assert_eq!((code, same), (65, err.replace("imported", "previewed")));
    let (code, _, err) = run(aldaba(folder.path()).args(["policy", "import", "none.json"]));
    assert_eq!(code, 1);
    assert!(err.starts_with("aldaba: cannot read none.json: "), "{err}");
}

#[test]
fn a_server_that_is_not_there_and_a_token_that_is_not_good_are_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.json"), policy("a", &["1s"]).to_string()).unwrap();
    let import = |more: &[&str]| run(aldaba(folder.path()).args(["policy", "import", "p.json"]).args(more));
    // The port is closed now.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{free}");
    let (code, _, err) = import(&["--url", &nobody, "--token", "x"]);
    assert_eq!(code, 69);
    assert!(err.starts_with(&format!("aldaba: cannot reach a server at {nobody}/: ")), "{err}");
    let (code, _, err) = import(&["--url", &nobody]);
    assert_eq!(code, 1);
    assert!(err.starts_with("aldaba: there is no token: give one with ALDABA_TOKEN or --token"), "{err}");
    let (code, _, err) = import(&["--url", "here"]);
    assert_eq!(code, 2);
    assert_eq!(err, "aldaba: --url here: expected http://host:port or https://host\n");
    assert!(!folder.path().join("aldaba-data").exists(), "nothing is made");

    let (_server, url) = serve(folder.path(), &[]);
    let (code, _, err) = import(&["--url", &url, "--token", "x"]);
    assert_eq!(code, 69);
    assert_eq!(
        err,
        format!("aldaba: the server at {url}/ does not take the token; `aldaba token create` prints one\n")
    );
    // A token is made for this machine only.
    let (_, _, err) = import(&["--url", "http://hooks.example.com"]);
    assert!(err.starts_with("aldaba: there is no token"), "{err}");
}

const DOCUMENTED: [(&str, &str); 6] = [
    ("RETRY_STOP_DATE_AFTER_MINUTES", "3"),
    ("WEBHOOK_TIMEOUT_MS", "2500"),
    ("WEBHOOK_MAX_ATTEMPTS", "5"),
    ("WEBHOOK_RETRY_INTERVAL_MS", "45000"),
    ("WEBHOOK_BASE_DELAY_MS", "250"),
    ("WEBHOOK_MAX_DELAY_MS", "1500"),
];

#[tokio::test]
async fn b3_c3_the_documents_variables_hold_in_the_server_and_on_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let (_server, url) = serve(folder.path(), &DOCUMENTED);
    let api = client(folder.path(), &url);
    let here = |arguments: &[&str]| {
        let (code, out, err) = run(aldaba(folder.path()).arg("policy").args(arguments).envs(DOCUMENTED));
        assert_eq!((code, err.as_str()), (0, ""));
        out
    };
    let shown = |name: &str| -> Value { serde_json::from_str(&here(&["show", name])).unwrap() };
    for persistent in [api.get("/policy/persistent").await.expect(200), shown("persistent")] {
        assert_eq!(persistent["limit"], json!({"attempts": null, "stopAfter": "3m"}));
    }
    for job_status in [api.get("/policy/job-status").await.expect(200), shown("job-status")] {
        assert_eq!(job_status["limit"], json!({"attempts": 5, "stopAfter": null}));
        let timeouts = json!({"connect": "2500ms", "answer": "2500ms", "total": "2500ms"});
        assert_eq!(job_status["timeouts"], timeouts);
        let schedule = json!({"type": "exponential", "base": "250ms", "factor": 2, "cap": "1500ms"});
        assert_eq!(job_status["schedule"], schedule);
    }
    let preview = api.get("/policy/persistent/preview").await.expect(200);
    assert_eq!(preview["attempts"].as_array().unwrap().len(), 7, "at 0, 2, 6 … 126 s");
    assert!(here(&["preview", "persistent"]).contains("after 7 attempts (stop_date)"));
    assert_eq!(
        api.get("/policy/job-status/preview").await.expect(200)["attempts"].as_array().unwrap().len(),
        5
    );
    assert!(here(&["preview", "job-status"]).contains("after 5 attempts (exhausted)"));
}

#[test]
fn b3_c3_a_value_that_is_no_whole_number_of_at_least_1_stops_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in DOCUMENTED {
        for value in ["soon", "0", "-5", "1.5", "99999999999999999999"] {
            for command in [&["serve", "--listen", "127.0.0.1:0"][..], &["policy", "list"]] {
                let (code, out, err) = run(aldaba(folder.path()).args(command).env(name, value));
                assert_eq!((code, out.as_str()), (2, ""), "{name}={value}");
                let message = format!("aldaba: {name}={value}: expected a whole number from 1 to ");
                assert!(err.starts_with(&message), "{err}");
            }
        }
    }
    // Each is a number, and they do not fit together.
    let delays = [("WEBHOOK_BASE_DELAY_MS", "2000"), ("WEBHOOK_MAX_DELAY_MS", "1999")];
    let (code, _, err) = run(aldaba(folder.path()).args(["serve", "--listen", "127.0.0.1:0"]).envs(delays));
    let message = "aldaba: WEBHOOK_MAX_DELAY_MS=1999: expected a whole number from 2000 to 2592000000 \
                   (it must not be below WEBHOOK_BASE_DELAY_MS)\n";
    assert_eq!((code, err.as_str()), (2, message));
    assert!(!folder.path().join("aldaba-data").exists(), "nothing is made");
}

#[tokio::test]
async fn an_import_finds_the_server_of_the_data_folder_and_speaks_for_the_organization_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("p.json"), policy("a", &["1s"]).to_string()).unwrap();
    let import = |more: &[&str]| run(aldaba(folder.path()).args(["policy", "import", "p.json"]).args(more));
    let (code, _, err) = import(&[]);
    assert_eq!(code, 1);
    assert!(err.starts_with("aldaba: there is no Aldaba installation in "), "{err}");
    assert!(!folder.path().join("aldaba-data").exists(), "nothing is made");
    // On a port that no setting names: the folder knows it.
    let (server, url) = serve(folder.path(), &[]);
    let (code, out, err) = import(&[]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.ends_with("1 created, 0 replaced, 0 unchanged\n"), "{out}");
    client(folder.path(), &url).get("/policy/a").await.expect(200);
    let other = ["--org", "org_23rb8YdGqMT0qIzpgGwdXfHirMv"];
    let (_, out, _) = import(&other);
    assert!(out.ends_with("1 created, 0 replaced, 0 unchanged\n"), "another organization has its own: {out}");
    drop(server);
    let (code, _, err) = import(&[]);
    assert_eq!(code, 69);
    assert!(err.contains("no server runs on the data folder"), "{err}");
    assert!(err.contains("aldaba serve --data ") && err.contains("--url"), "what to do: {err}");
}

#[test]
fn a_file_of_own_policies_is_previewed_without_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let write =
        |name: &str, value: Value| std::fs::write(folder.path().join(name), value.to_string()).unwrap();
    write("p.json", json!([policy("patient", &["10s", "1h"]), policy("brief", &["1s"])]));
    write("mine", policy("mine", &["2s"]));
    let preview = |arguments: &[&str]| run(aldaba(folder.path()).args(["policy", "preview"]).args(arguments));
    let (code, out, err) = preview(&["p.json", "--outage", "15s"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(
        out.starts_with("patient: the receiver goes down for 15s") && out.contains("Arrives after 1h, "),
        "{out}"
    );
    assert!(out.contains("\nbrief: ") && out.contains("dead letter after 2 attempts"), "{out}");
    assert!(
        out.contains("time since the event was accepted, on a logarithmic scale"),
        "the axis is labelled: {out}"
    );
    let (code, out, _) = preview(&["./mine"]);
    assert_eq!((code, out.starts_with("mine: ")), (0, true), "{out}");
    // An argument is a name, even if a file with this name exists.
    let (code, _, err) = preview(&["mine"]);
    assert_eq!(code, 1);
    assert!(err.contains("there is no policy `mine`") && err.contains("./FILE"), "{err}");
    let (code, _, err) = preview(&["quik"]);
    assert_eq!(code, 1);
    assert!(err.contains("did you mean `quick`?"), "{err}");
    assert!(!folder.path().join("aldaba-data").exists(), "nothing is made");
}

#[tokio::test]
async fn the_policies_of_a_data_folder_are_known_beside_its_server_and_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let (server, url) = serve(folder.path(), &[]);
    let api = client(folder.path(), &url);
    api.post("/policy", policy("patient", &["10s", "1h"]).to_string()).await.expect(201);
    let data = folder.path().join("aldaba-data");
    let ask = |arguments: &[&str]| {
        let mut command = aldaba(elsewhere.path());
        run(command.arg("policy").args(arguments).arg("--data").arg(&data))
    };
    let check = || {
        let (code, out, err) = ask(&["list"]);
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.contains("\npatient ") && out.contains("\nquick "), "{out}");
        let (code, out, _) = ask(&["show", "patient"]);
        assert_eq!(code, 0);
        assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["name"], "patient");
        let (code, out, _) = ask(&["preview", "patient", "--outage", "15s"]);
        assert_eq!((code, out.contains("Arrives after 1h, ")), (0, true), "{out}");
        // The folder that is looked for by itself, and the one of a variable.
        let (code, out, _) = run(aldaba(folder.path()).args(["policy", "show", "patient"]));
        assert_eq!((code, out.contains("patient")), (0, true));
        let (code, out, _) = run(aldaba(elsewhere.path()).args(["policy", "list"]).env("ALDABA_DATA", &data));
        assert_eq!((code, out.contains("\npatient ")), (0, true));
    };
    check();
    drop(server);
    check();
    let (code, _, err) = run(aldaba(elsewhere.path()).args(["policy", "list", "--data", "nowhere"]));
    assert_eq!(code, 1);
    assert!(err.contains("there is no Aldaba installation in "), "{err}");
}
