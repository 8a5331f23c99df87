//! The program as people run it.

use crate::support::client::Client;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

pub(crate) fn aldaba(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aldaba"));
    command.current_dir(folder).env_clear();
    command
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Ends the program when a test fails.
pub(crate) struct Started(Child);

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Started {
    /// Starts a server and returns it with the lines it says hello with.
    pub(crate) fn serve(folder: &Path, more: &[(&str, &str)]) -> (Self, Vec<String>) {
        let mut command = aldaba(folder);
        command.args(["serve", "--listen", "127.0.0.1:0"]).envs(more.iter().copied());
        Self::say_hello(&mut command)
    }

    /// The same with its log in a file.
    pub(crate) fn logging(command: &mut Command, log: &Path) -> (Self, Vec<String>) {
        Self::greeted(command.stderr(std::fs::File::create(log).unwrap()))
    }

    fn say_hello(command: &mut Command) -> (Self, Vec<String>) {
        Self::greeted(command.stderr(Stdio::piped()))
    }

    fn greeted(command: &mut Command) -> (Self, Vec<String>) {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = Vec::new();
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            lines.push(line.unwrap());
            if lines.last().is_some_and(|line| line.starts_with("For an API token: ")) {
                break;
            }
        }
        (Self(child), lines)
    }

    fn terminate(&self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }
}

pub(crate) fn create_token(folder: &Path, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } =
        aldaba(folder).args(["token", "create"]).args(arguments).output().unwrap();
    assert!(status.success(), "{}", text(&stderr));
    let stdout = text(&stdout);
    let token = stdout.strip_suffix('\n').expect("one line");
    assert!(!token.contains(char::is_whitespace) && token.split('.').count() == 3, "{token}");
    token.to_owned()
}

#[tokio::test]
async fn a_fresh_folder_serves_with_a_token_made_before_or_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let made = aldaba(folder.path()).arg("init").output().unwrap();
    assert!(made.status.success(), "{}", text(&made.stderr));
    let before = create_token(folder.path(), &[]);
    let (mut server, hello) = Started::serve(folder.path(), &[]);
    let address = hello[0].strip_prefix("Aldaba listens on http://").expect("the address").parse().unwrap();
    let data = folder.path().canonicalize().unwrap().join("aldaba-data");
    assert!(hello.contains(&format!("Data folder: {}", data.display())), "{hello:?}");
    assert!(hello.contains(&format!("API documentation: http://{address}/docs")), "{hello:?}");
    assert!(hello[4].ends_with(&format!(" token create --data {}", data.display())), "{}", hello[4]);
    let beside = create_token(folder.path(), &["--data", "aldaba-data"]);
    let other = create_token(folder.path(), &["--org", "org_23rb8YdGqMT0qIzpgGwdXfHirMv"]);
    let nobody = Client { address, authorization: None };
    let made = nobody.with_token(&before).post("/app", r#"{"name":"a","uid":"a"}"#).await.expect(201);
    assert_eq!(nobody.with_token(&beside).get("/app/a").await.expect(200), made);
    nobody.with_token(&other).get("/app/a").await.expect(404);
    server.terminate();
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

#[test]
fn a_wrong_setting_stops_the_start_with_a_message() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.toml"), "lissten = '127.0.0.1:1'").unwrap();
    for (arguments, variable, message) in [
        (&["serve", "--listen", "here"][..], None, "aldaba: --listen here: expected an address and a port"),
        (
            &["serve"],
            Some(("ALDABA_IN_FLIGHT", "many")),
            "aldaba: ALDABA_IN_FLIGHT=many: expected a whole number",
        ),
        (
            &["serve", "--config", "a.toml"],
            None,
            "aldaba: a.toml: there is no setting `lissten`; did you mean `listen`?",
        ),
        (
            &["serve"],
            Some(("ALDABA_LOG", "inof")),
            "aldaba: ALDABA_LOG=inof: expected a level (error, warn, ",
        ),
        (
            &["serve", "--database-url", "postgres://x"],
            None,
            "aldaba: --database-url (hidden): PostgreSQL comes with a later version; leave",
        ),
        (
            &["serve", "--listen", "no.such.name.invalid:1"],
            None,
            "aldaba: --listen no.such.name.invalid:1: this machine resolves the name no.such.name.invalid to no address",
        ),
        (&["serve", "--data", "a.toml"], None, "aldaba: --data a.toml: it is a file; expected a folder"),
    ] {
        let output = aldaba(folder.path()).args(arguments).envs(variable).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).starts_with(message), "{}", text(&output.stderr));
        assert!(output.stdout.is_empty());
    }
    assert!(!folder.path().join("aldaba-data").exists(), "nothing is made");
}

#[test]
fn an_address_in_use_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = aldaba(folder.path()).args(["serve", "--listen", &address]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = text(&output.stderr);
    assert!(message.contains(&format!("cannot listen on {address}: ")), "{message}");
}

#[test]
fn another_encryption_key_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, _) = Started::serve(folder.path(), &[]);
    server.terminate();
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
    let key = "0f".repeat(32);
    let output = aldaba(folder.path())
        .args(["serve", "--listen", "127.0.0.1:0"])
        .env("ALDABA_ENCRYPTION_KEY", key)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("ALDABA_ENCRYPTION_KEY"), "{}", text(&output.stderr));
}

/// The soft limit on open files of a process, as the system tells it, and the hard one.
#[cfg(target_os = "linux")]
fn open_files(process: u32) -> [String; 2] {
    let limits = std::fs::read_to_string(format!("/proc/{process}/limits")).unwrap();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut values = line.split_whitespace().map(str::to_owned);
    [values.next().unwrap(), values.next().unwrap()]
}

/// A server that was started by a shell which has set limits before.
#[cfg(target_os = "linux")]
fn serve_with_limits(folder: &Path, limits: &str) -> (Started, Vec<String>) {
    let mut command = Command::new("sh");
    command.current_dir(folder).env_clear();
    let script = format!("{limits} && exec \"$0\" serve --listen 127.0.0.1:0");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_aldaba")]);
    Started::say_hello(&mut command)
}

#[cfg(target_os = "linux")]
#[test]
fn the_limit_on_open_files_is_raised_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let (server, _) = serve_with_limits(folder.path(), "ulimit -S -n 200");
    let [soft, hard] = open_files(server.0.id());
    assert_eq!(soft, hard);
    assert_ne!(soft, "200");
}

#[cfg(target_os = "linux")]
#[test]
fn too_few_open_files_are_named_and_the_server_starts_with_less() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, hello) = serve_with_limits(folder.path(), "ulimit -n 1000");
    assert!(hello[0].starts_with("Aldaba listens on "), "{}", hello[0]);
    server.terminate();
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
    let mut log = String::new();
    std::io::Read::read_to_string(&mut server.0.stderr.take().unwrap(), &mut log).unwrap();
    assert!(log.contains("lets this process have 1000 files open, and the settings may need "), "{log}");
    assert!(log.contains("max_connections from 4096 to 64"), "{log}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn with_256_open_files_many_connections_are_served_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (mut server, hello) = serve_with_limits(folder.path(), "ulimit -n 256");
    let address: std::net::SocketAddr =
        hello[0].strip_prefix("Aldaba listens on http://").expect("the address").parse().unwrap();
    let mut open = Vec::new();
    for number in 0..64 {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request = b"GET /api/v1/health HTTP/1.1\r\nhost: x\r\n\r\n";
        tokio::io::AsyncWriteExt::write_all(&mut stream, request).await.unwrap();
        let mut start = [0; 12];
        tokio::io::AsyncReadExt::read_exact(&mut stream, &mut start).await.unwrap();
        assert_eq!(&start, b"HTTP/1.1 200", "connection {number}");
        open.push(stream);
    }
    let files = std::fs::read_dir(format!("/proc/{}/fd", server.0.id())).unwrap().count();
    assert!(files < 256 - 80, "{files} files are open, and deliveries need some");
    drop(open);
    server.terminate();
    assert_eq!(server.0.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_start_with_too_few_open_files_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    for (files, starts) in [(64, false), (127, false), (128, true)] {
        let script = format!("ulimit -n {files} && exec \"$0\" serve --listen 127.0.0.1:0");
        let mut command = Command::new("sh");
        command.current_dir(folder.path()).env_clear();
        command.args(["-c", &script, env!("CARGO_BIN_EXE_aldaba")]);
        if starts {
            let (_server, hello) = Started::say_hello(&mut command);
            assert!(hello[0].starts_with("Aldaba listens on "), "{}", hello[0]);
            continue;
        }
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let message = text(&output.stderr);
        assert!(
            message.contains(&format!("have {files} files open, and at least 128 are needed")),
            "{message}"
        );
        assert!(message.contains("`ulimit -n 128`") && message.contains("LimitNOFILE=128"), "{message}");
        assert!(!folder.path().join("aldaba-data").exists(), "nothing is made");
    }
}

#[tokio::test]
async fn a_name_can_be_listened_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = aldaba(folder.path());
    let (_server, hello) = Started::say_hello(command.args(["serve", "--listen", "localhost:0"]));
    let address: std::net::SocketAddr =
        hello[0].strip_prefix("Aldaba listens on http://").expect("the address").parse().unwrap();
    assert!(address.ip().is_loopback(), "{address}");
    // By the address that is shown, and by the name.
    Client { address, authorization: None }.get("/health").await.expect(200);
    tokio::net::TcpStream::connect(("localhost", address.port())).await.unwrap();
    let link =
        hello[1].strip_prefix("Dashboard, for 10 minutes and once: ").expect("a first start prints a link");
    assert!(link.starts_with(&format!("http://{address}/dashboard/link?key=")), "{link}");
    let root = Client { address, authorization: None }.get("//").await;
    assert_eq!(root.headers["location"], "/dashboard");
}

#[test]
fn an_installation_can_be_made_before_the_first_start_and_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let init = || {
        let output = aldaba(folder.path()).args(["init", "--data", "data"]).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let made = init();
    assert!(made.contains("/data is made."), "{made}");
    let start = format!("Start it with: {} serve --data ", env!("CARGO_BIN_EXE_aldaba"));
    assert!(made.contains(&start), "{made}");
    let secret = || std::fs::read(folder.path().join("data/jwt.secret")).unwrap();
    let first = secret();
    assert!(init().contains("/data was there already."));
    assert_eq!(secret(), first);
    create_token(folder.path(), &["--data", "data"]);
}

/// Runs a command and returns its exit code.
fn exit_code(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> i32 {
    let output = aldaba(folder).args(arguments).envs(variables.iter().copied()).output().unwrap();
    output.status.code().unwrap_or_else(|| panic!("{arguments:?}: {}", text(&output.stderr)))
}

#[tokio::test]
async fn one_kind_of_mistake_has_one_exit_code_in_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    std::fs::write(path.join("wrong.json"), "[{}]").unwrap();
    std::fs::write(path.join("wrong.toml"), "in_flight = 0").unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let (_server, _) = Started::serve(path, &[]);
    let code = |arguments: &[&str], variables: &[(&str, &str)], expected: i32| {
        assert_eq!(exit_code(path, arguments, variables), expected, "{arguments:?} {variables:?}");
    };
    let nobody = ["--url", "http://127.0.0.1:1", "--token", "x"];
    let with = |before: &[&'static str]| [before, &nobody].concat();
    // 0: done.
    for arguments in [&["--help"][..], &["policy", "list"], &["init"], &["token", "list"], &["clock"]] {
        code(arguments, &[], 0);
    }
    // 2: a wrong command line or setting.
    for arguments in [
        &["sevre"][..],
        &["serve", "--lissten", "x"],
        &["serve", "--listen", "here"],
        &["serve", "--listen", "no.such.name.invalid:1"],
        &["serve", "--config", "wrong.toml"],
        &["serve", "--config", "none.toml"],
        &["init", "--config", "wrong.toml"],
        &["demo", "--listen", "here"],
        &["demo", "--rate", "0"],
        &["token", "create", "--expires", "soon"],
        &["token", "create", "--signed", "--scope", "send"],
        &["token", "create", "--url", "http://127.0.0.1:1"],
        &["token", "list", "--url", "here"],
        &["policy", "list", "--url", "here"],
        &["policy", "preview", "quick", "--outage", "soon"],
        &["clock", "--config", "wrong.toml"],
    ] {
        code(arguments, &[], 2);
    }
    for variable in [("ALDABA_LOG", "inof"), ("ALDABA_IN_FLIGHT", "0"), ("WEBHOOK_MAX_ATTEMPTS", "0")] {
        for arguments in [&["serve"][..], &["token", "create"], &["policy", "list"], &["clock"], &["init"]] {
            code(arguments, &[variable], 2);
        }
    }
    code(&["serve", "--data", "new"], &[("ALDABA_CA_FILE", "none.pem")], 2);
    code(
        &["policy", "list", "--url", "https://127.0.0.1:1", "--token", "x"],
        &[("ALDABA_CA_FILE", "none.pem")],
        2,
    );
    // 1: it cannot be done.
    for arguments in [
        &["serve", "--listen", &taken, "--data", "new"][..],
        &["serve", "--listen", "127.0.0.1:0"],
        &["token", "create", "--data", "nowhere"],
        &["token", "create", "--name", "a", "--data", "nowhere"],
        &["token", "list", "--data", "nowhere"],
        &["token", "revoke", "nothing"],
        &["token", "create", "--app", "nowhere"],
        &["policy", "show", "nothing"],
        &["policy", "import", "none.json"],
        &["policy", "preview", "none.json"],
        &["clock", "--data", "nowhere"],
    ] {
        code(arguments, &[], 1);
    }
    // 65: the content of a file is invalid.
    code(&["policy", "import", "wrong.json"], &[], 65);
    code(&["policy", "preview", "wrong.json"], &[], 65);
    // 69: a server cannot be reached, or does not take the token.
    for arguments in [with(&["token", "list"]), with(&["policy", "list"]), with(&["token", "revoke", "a"])] {
        code(&arguments, &[], 69);
    }
    code(&["token", "list", "--token", "wrong"], &[], 69);
    assert!(!path.join("nowhere").exists(), "nothing is made");
}

#[test]
fn an_unreadable_installation_is_not_treated_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    // A loop stops root too, which no mode of a folder does.
    let loops = folder.path().join("loop");
    std::os::unix::fs::symlink(&loops, &loops).unwrap();
    for arguments in [
        &["token", "create"][..],
        &["token", "list"],
        &["clock"],
        &["policy", "list"],
        &["policy", "show", "quick"],
    ] {
        let output = aldaba(folder.path()).args(arguments).args(["--data", "loop"]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {said}");
        assert!(
            said.starts_with("aldaba: cannot read the Aldaba installation in /"),
            "{arguments:?}: {said}"
        );
        assert!(
            said.contains("/loop: ") && said.contains("as the user of the server"),
            "{arguments:?}: {said}"
        );
    }
}

#[tokio::test]
async fn a_start_that_makes_a_new_secret_beside_a_database_warns_of_tokens_that_are_invalid() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let start = || {
        let mut command = aldaba(folder.path());
        command.args(["serve", "--listen", "127.0.0.1:0"]);
        let (server, hello) = Started::logging(&mut command, &log);
        let address = hello[0].strip_prefix("Aldaba listens on http://").unwrap().parse().unwrap();
        (server, Client { address, authorization: None }, std::fs::read_to_string(&log).unwrap())
    };
    let secret = folder.path().join("aldaba-data/jwt.secret");
    let (server, _, said) = start();
    assert!(!said.contains("WARN") || !said.contains("jwt.secret"), "the first start: {said}");
    let token = create_token(folder.path(), &[]);
    let old = std::fs::read(&secret).unwrap();
    drop(server);
    std::fs::remove_file(&secret).unwrap();
    let (server, client, said) = start();
    let warning = said.lines().find(|line| line.contains("jwt.secret")).unwrap_or_else(|| panic!("{said}"));
    assert!(
        warning.contains("WARN") && warning.contains("invalid") && warning.contains("restore"),
        "{warning}"
    );
    client.with_token(&token).get("/app").await.expect(401);
    drop(server);
    // As the warning says.
    std::fs::write(&secret, old).unwrap();
    let (_server, client, said) = start();
    assert!(!said.contains("jwt.secret"), "{said}");
    client.with_token(&token).get("/app").await.expect(200);
}

#[test]
fn the_help_of_serve_points_to_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let help = text(&aldaba(folder.path()).args(["serve", "--help"]).output().unwrap().stdout);
    for part in ["ALDABA_LISTEN", "ALDABA_ALLOW_NETWORKS=127.0.0.0/8", "docs/configuration.md"] {
        assert!(help.contains(part), "{part}: {help}");
    }
}
