//! The listener's TLS, with the process and curl: certificates that are right, wrong, expired and replaced.

mod black_box;

use black_box::{Server, free_address, token, wait_until};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

/// A folder with the data, the files of a certificate, and the server's log.
struct Stage {
    folder: TempDir,
}

/// A self-signed certificate for localhost, and its key.
struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    fn until(year: i32) -> Self {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec!["localhost".into()]).expect("a name");
        params.not_after = date_time_ymd(year, 1, 1);
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        Self { certificate, key: key.serialize_pem() }
    }
}

impl Stage {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    fn with(pair: &Pair) -> Self {
        let stage = Self::new();
        stage.write(pair);
        stage
    }

    fn write(&self, Pair { certificate, key }: &Pair) {
        // As tools do it that renew certificates: one file after the other, each at once.
        for (name, content) in [("certificate.pem", certificate), ("key.pem", key)] {
            let draft = self.at("draft");
            std::fs::write(&draft, content).expect("a file");
            std::fs::rename(draft, self.at(name)).expect("a file");
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    fn data(&self) -> PathBuf {
        self.at("data")
    }

    fn start(&self, more: &[(&str, &str)]) -> Server {
        let (certificate, key, log) = (self.path("certificate.pem"), self.path("key.pem"), self.path("log"));
        let settings =
            [("ALDABA_TLS_CERTIFICATE", &*certificate), ("ALDABA_TLS_KEY", &*key), ("ALDABA_LOG", "info")];
        let settings: Vec<_> = settings.into_iter().chain(more.iter().copied()).collect();
        Server::start_logging(&self.data(), free_address(), &settings, Path::new(&log))
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.at("log")).expect("a log")
    }

    /// curl that trusts the file `ca.pem`.
    fn curl(&self, address: SocketAddr, path: &str, more: &[&str]) -> Output {
        let ca = self.path("ca.pem");
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "20", "--cacert", &ca]);
        command.args(["--write-out", "\n%{http_version} %{http_code} %{ssl_verify_result}"]);
        command.args(more).arg(format!("https://localhost:{}{path}", address.port()));
        command.output().expect("curl runs")
    }

    /// The certificate that new connections get.
    fn trust(&self, pair: &Pair) {
        std::fs::write(self.at("ca.pem"), &pair.certificate).expect("a file");
    }

    fn metric(&self, address: SocketAddr, name: &str) -> f64 {
        let found = self.curl(address, "/metrics", &["--insecure"]);
        let text = String::from_utf8_lossy(&found.stdout).into_owned();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().expect("a number")
    }
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

#[test]
fn curl_speaks_http2_and_http1_with_a_trusted_certificate_and_nothing_older_than_tls_1_2() {
    let pair = Pair::until(2060);
    let stage = Stage::with(&pair);
    stage.trust(&pair);
    let token = token(&stage.data());
    let server = stage.start(&[]);
    let authorization = format!("authorization: Bearer {token}");
    for (more, expected) in [
        (&["--http2"][..], "\n2 200 0"),
        (&["--http1.1"], "\n1.1 200 0"),
        (&["--tlsv1.2", "--tls-max", "1.2"], "\n2 200 0"),
        (&["--tlsv1.3"], "\n2 200 0"),
        (&["--no-alpn"], "\n1.1 200 0"),
    ] {
        let arguments: Vec<_> = more.iter().copied().chain(["--header", &authorization]).collect();
        let (out, error) = said(&stage.curl(server.address, "/api/v1/app", &arguments));
        assert!(out.starts_with("{\"data\":[]") && out.ends_with(expected), "{more:?}: {out} {error}");
    }
    let old = ["--tlsv1.1", "--tls-max", "1.1", "--ciphers", "DEFAULT@SECLEVEL=0"];
    let (out, error) = said(&stage.curl(server.address, "/api/v1/health", &old));
    assert!(out.contains(" 000 ") && error.contains("alert"), "{out} {error}");
    let body = format!("{{\"name\": \"{}\"}}", "x".repeat(200));
    let (out, _) =
        said(&stage.curl(server.address, "/api/v1/app", &["--header", &authorization, "--json", &body]));
    assert!(out.ends_with("\n2 201 0"), "{out}");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn rsa_keys_and_every_form_of_a_key_are_taken() {
    let stage = Stage::new();
    let openssl = |arguments: &[&str]| {
        let made = Command::new("openssl").args(arguments).current_dir(stage.folder.path()).output();
        let made = made.expect("openssl runs");
        assert!(made.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&made.stderr));
    };
    let signed = |key: &str| {
        let names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "30"];
        let files = ["req", "-x509", "-key", key, "-out", "certificate.pem"];
        openssl(&[&files[..], &names].concat());
        std::fs::copy(stage.at("certificate.pem"), stage.at("ca.pem")).expect("a copy");
    };
    openssl(&["genpkey", "-algorithm", "RSA", "-out", "rsa.pem"]);
    openssl(&["ecparam", "-name", "prime256v1", "-genkey", "-out", "ec.pem"]);
    openssl(&["genpkey", "-algorithm", "ed25519", "-out", "ed.pem"]);
    openssl(&["rsa", "-in", "rsa.pem", "-traditional", "-out", "pkcs1.pem"]);
    for (source, form, begin) in [
        ("rsa.pem", "rsa.pem", "-----BEGIN PRIVATE KEY-----"),
        ("rsa.pem", "pkcs1.pem", "-----BEGIN RSA PRIVATE KEY-----"),
        // With its parameters in a block before it.
        ("ec.pem", "ec.pem", "-----BEGIN EC P"),
        ("ed.pem", "ed.pem", "-----BEGIN PRIVATE KEY-----"),
    ] {
        signed(source);
        let key = std::fs::read_to_string(stage.at(form)).expect("a key");
        assert!(key.starts_with(begin), "{form}: {}", key.lines().next().unwrap_or_default());
        std::fs::write(stage.at("key.pem"), key).expect("a file");
        let server = stage.start(&[]);
        let (out, error) = said(&stage.curl(server.address, "/api/v1/health/live", &[]));
        assert!(out.ends_with("\n2 200 0"), "{form}: {out} {error}");
        assert_eq!(server.stop(), Some(0));
    }
}

#[test]
fn wrong_files_stop_the_start_with_the_setting_the_file_and_what_to_do() {
    let (pair, other) = (Pair::until(2060), Pair::until(2060));
    let stage = Stage::with(&pair);
    let run = |settings: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aldaba"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--data"]).arg(stage.data());
        let output = command.envs(settings.iter().copied()).output().expect("it runs");
        let (out, error) = said(&output);
        assert_eq!((output.status.code(), &*out), (Some(2), ""), "{error}");
        assert!(!error.contains("PRIVATE KEY-----\n"), "nothing of a key is shown");
        error
    };
    let (certificate, key) = (stage.path("certificate.pem"), stage.path("key.pem"));
    let error = run(&[("ALDABA_TLS_CERTIFICATE", &certificate)]);
    assert!(error.contains("tls_certificate is set, and tls_key is not: TLS needs both"), "{error}");
    let files = [("ALDABA_TLS_CERTIFICATE", &*certificate), ("ALDABA_TLS_KEY", &*key)];
    std::fs::write(stage.at("key.pem"), &other.key).expect("a file");
    let error = run(&files);
    assert!(
        error.contains(&format!("tls_key: the key in {key} does not belong to the first certificate")),
        "{error}"
    );
    std::fs::write(stage.at("key.pem"), "nothing").expect("a file");
    assert!(run(&files).contains(&format!("tls_key: {key} holds no private key; expected")));
    std::fs::remove_file(stage.at("key.pem")).expect("it was there");
    let pipe = Command::new("mkfifo").arg(stage.at("key.pem")).status();
    assert!(pipe.expect("mkfifo runs").success());
    let error = run(&files);
    assert!(
        error.contains(&format!("tls_key: {key} is not a regular file; name a file with PEM")),
        "{error}"
    );
    std::fs::remove_file(stage.at("key.pem")).expect("it was there");
    let error = run(&files);
    assert!(error.contains(&format!("tls_key: cannot read {key}: No such file")), "{error}");
    assert!(!stage.data().exists(), "nothing is made");
}

#[test]
fn an_expired_certificate_is_said_in_the_log_in_health_and_in_the_metrics_and_deliveries_go_on() {
    let pair = Pair::until(2020);
    let stage = Stage::with(&pair);
    stage.trust(&pair);
    let server = stage.start(&[]);
    let (out, error) = said(&stage.curl(server.address, "/api/v1/health", &[]));
    assert!(out.contains(" 000 ") && error.contains("certificate has expired"), "{out} {error}");
    let log = stage.log();
    assert!(log.contains("ERROR") && log.contains("has expired at 2020-01-01T00:00:00"), "{log}");
    let (out, _) = said(&stage.curl(server.address, "/api/v1/health/ready", &["--insecure"]));
    assert!(
        out.contains(r#""name":"certificate","state":"warning","detail":"the TLS certificate has expired"#),
        "{out}"
    );
    assert!(out.contains("\"status\":\"ready\""), "messages are accepted and delivered: {out}");
    let expiry = "aldaba_certificate_expiry_timestamp_seconds{kind=\"listener\"}";
    assert_eq!(stage.metric(server.address, expiry), 1_577_836_800.0);
    wait_until("the alert fires", || {
        stage.metric(
            server.address,
            "aldaba_alerts_firing{rule=\"certificate-expiring\",severity=\"warning\",scope=\"server\"}",
        ) == 1.0
    });
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn another_certificate_is_taken_when_its_files_change_and_a_wrong_one_changes_nothing() {
    let (first, second, third) = (Pair::until(2060), Pair::until(2061), Pair::until(2062));
    let stage = Stage::with(&first);
    stage.trust(&first);
    let server = stage.start(&[]);
    let works = || said(&stage.curl(server.address, "/api/v1/health/live", &[])).0.ends_with("\n2 200 0");
    assert!(works());
    stage.write(&second);
    stage.trust(&second);
    wait_until("the second certificate is in use", works);
    assert!(stage.log().contains("the TLS certificate was replaced"), "{}", stage.log());
    // Only half of a pair.
    std::fs::write(stage.at("certificate.pem"), &third.certificate).expect("a file");
    wait_until("the metrics say that it cannot be used", || {
        stage.metric(server.address, "aldaba_tls_certificate_outdated") == 1.0
    });
    assert!(works(), "the second one is still in use");
    let log = stage.log();
    assert!(log.contains("was not replaced, the former one stays in use: tls_key: the key in "), "{log}");
    let (out, _) = said(&stage.curl(server.address, "/api/v1/health/ready", &[]));
    assert!(out.contains(r#""name":"certificate","state":"warning""#), "{out}");
    assert!(!out.contains("key.pem"), "anybody may ask: {out}");
    stage.write(&third);
    stage.trust(&third);
    // At once, with a signal.
    server.signal("-HUP");
    wait_until("the third certificate is in use", works);
    assert_eq!(stage.metric(server.address, "aldaba_tls_certificate_outdated"), 0.0);
    // An expired one is no replacement.
    stage.write(&Pair::until(2020));
    server.signal("-HUP");
    let refusals =
        || stage.log().matches("the settings were not changed: tls_certificate: the certificate in ").count();
    wait_until("it is refused", || refusals() == 1);
    server.signal("-HUP");
    wait_until("each reload says it", || refusals() == 2);
    assert!(works());
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn http_without_tls_is_answered_400_with_what_to_do_and_nothing_is_done() {
    let pair = Pair::until(2060);
    let stage = Stage::with(&pair);
    let server = stage.start(&[]);
    let url = format!("http://localhost:{}/api/v1/app", server.address.port());
    let body = format!("{{\"name\": \"{}\"}}", "x".repeat(60_000));
    let output = Command::new("curl").args(["--silent", "--include", "--json", &body, &url]).output();
    let (out, _) = said(&output.expect("curl runs"));
    assert!(out.starts_with("HTTP/1.1 400 ") && out.contains("This port speaks HTTPS"), "{out}");
    wait_until("the log says it", || stage.log().contains("a client spoke HTTP without TLS"));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn metrics_listen_speaks_tls_too() {
    let pair = Pair::until(2060);
    let stage = Stage::with(&pair);
    stage.trust(&pair);
    let address = free_address();
    let server = stage.start(&[("ALDABA_METRICS_LISTEN", &address.to_string())]);
    let (out, error) = said(&stage.curl(address, "/metrics", &[]));
    assert!(out.contains("aldaba_accepting") && out.ends_with("\n1.1 200 0"), "{out} {error}");
    let plain =
        Command::new("curl").args(["--silent", "--include", &format!("http://{address}/metrics")]).output();
    assert!(said(&plain.expect("curl runs")).0.starts_with("HTTP/1.1 400 "));
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn commands_reach_a_server_with_tls_by_its_folder_and_by_a_url_with_a_ca_file() {
    let pair = Pair::until(2060);
    let stage = Stage::with(&pair);
    stage.trust(&pair);
    let token = token(&stage.data());
    let server = stage.start(&[]);
    let command = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aldaba"));
        command.args(arguments).envs(variables.iter().copied());
        let output = command.output().expect("it runs");
        (output.status.code(), said(&output))
    };
    let (certificate, key, data) = (stage.path("certificate.pem"), stage.path("key.pem"), stage.path("data"));
    let files = [("ALDABA_TLS_CERTIFICATE", &*certificate), ("ALDABA_TLS_KEY", &*key)];
    // The certificate names localhost; the folder's record has 127.0.0.1.
    let (code, (out, error)) = command(&["alerts", "--data", &data], &files);
    assert_eq!(code, Some(0), "{out} {error}");
    let (url, ca) = (format!("https://localhost:{}", server.address.port()), stage.path("ca.pem"));
    let (code, (out, error)) = command(&["alerts", "--url", &url, "--token", &token, "--ca-file", &ca], &[]);
    assert_eq!(code, Some(0), "{out} {error}");
    let (code, (_, error)) = command(&["alerts", "--url", &url, "--token", &token], &[]);
    assert_eq!(code, Some(69), "{error}");
    assert!(error.contains("invalid peer certificate"), "{error}");
    assert_eq!(server.stop(), Some(0));
}
