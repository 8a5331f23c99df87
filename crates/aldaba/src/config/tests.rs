use super::values::encryption_key;
use super::*;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::collections::BTreeMap;

fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn with_variables(pairs: &[(&str, &str)]) -> Result<Loaded, Error> {
    load(&Sources { variables: variables(pairs), ..Sources::default() })
}

fn with_file(text: &str, pairs: &[(&str, &str)]) -> Result<Loaded, Error> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("aldaba.toml");
    std::fs::write(&file, text).unwrap();
    load(&Sources { file: Some(file), variables: variables(pairs), ..Sources::default() })
}

#[test]
fn the_defaults_of_the_table_are_the_defaults_of_the_program() {
    let mut config = Config::default();
    for setting in SETTINGS.iter().filter(|setting| !setting.default.is_empty()) {
        setting.apply(&mut config, setting.default).unwrap_or_else(|| panic!("{}", setting.key));
    }
    assert_eq!(format!("{config:?}"), format!("{:?}", Config::default()));
}

#[test]
fn the_documentation_has_a_row_for_every_setting() {
    let page = include_str!("../../../../docs/configuration.md");
    for setting in SETTINGS {
        let row = documentation_row(setting);
        assert!(page.contains(&row), "docs/configuration.md lacks or differs from:\n{row}");
    }
    for name in OVERRIDES {
        assert!(page.contains(name), "docs/configuration.md lacks {name}");
    }
}

#[test]
fn the_documentation_lists_the_settings_that_a_reload_applies() {
    let page = include_str!("../../../../docs/configuration.md");
    let mut keys: Vec<_> = SETTINGS.iter().filter(|setting| setting.reloaded).map(|s| s.key).collect();
    keys.sort_unstable();
    let listed = keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
    assert!(page.contains(&format!("\n{listed}.\n")), "docs/configuration.md lacks:\n{listed}.");
}

fn documentation_row(setting: &Setting) -> String {
    let default = if setting.default.is_empty() { "unset".into() } else { format!("`{}`", setting.default) };
    let variable = setting.variable();
    format!("| `{}` | `{variable}` | {default} | {} | {} |", setting.key, setting.expected(), setting.about)
}

#[test]
fn a_flag_beats_a_variable_beats_the_file_beats_the_default() {
    let listen = |loaded: Loaded| loaded.config.listen.port();
    assert_eq!(listen(with_variables(&[]).unwrap()), 8071);
    assert_eq!(listen(with_file("listen = '127.0.0.1:1'", &[]).unwrap()), 1);
    let variable = [("ALDABA_LISTEN", "127.0.0.1:2")];
    assert_eq!(listen(with_file("listen = '127.0.0.1:1'", &variable).unwrap()), 2);
    let flags = vec![("listen", "127.0.0.1:3".to_owned())];
    let sources = Sources { flags, variables: variables(&variable), file: None };
    assert_eq!(listen(load(&sources).unwrap()), 3);
}

#[test]
fn an_empty_variable_counts_as_unset() {
    let loaded = with_variables(&[("ALDABA_LISTEN", ""), ("ALDABA_JWT_SECRET", "")]).unwrap();
    assert_eq!(loaded.config.listen.port(), 8071);
    assert!(loaded.config.jwt_secret.is_none());
}

#[test]
fn toml_numbers_and_lists_are_read() {
    let loaded = with_file("in_flight = 77\nallow_networks = ['10.0.0.0/8', '::1/128']", &[]).unwrap();
    assert_eq!(loaded.config.engine.in_flight, 77);
    assert_eq!(loaded.config.allow_networks.len(), 2);
}

#[test]
fn a_wrong_value_stops_the_start_and_names_setting_value_and_expectation() {
    for (name, value) in [
        ("ALDABA_LISTEN", "8071"),
        ("ALDABA_ALLOW_NETWORKS", "127.0.0.0/8,home"),
        ("ALDABA_WIRE_PROFILE", "acme"),
        ("ALDABA_BRAND", "Acme Inc"),
        ("ALDABA_LOG", "a=b=c"),
        ("ALDABA_LOG_FORMAT", "xml"),
        ("ALDABA_IN_FLIGHT", "many"),
        ("ALDABA_IN_FLIGHT", "0"),
        ("ALDABA_MAX_CONNECTIONS", "-1"),
        ("ALDABA_SHUTDOWN_SECONDS", "1.5"),
        ("ALDABA_IDEMPOTENCY_HOURS", "1"),
        ("ALDABA_RETENTION_DAYS", "0"),
        ("ALDABA_DEAD_LETTER_DAYS", "-1"),
        ("WEBHOOK_MAX_ATTEMPTS", "0"),
        ("WEBHOOK_BASE_DELAY_MS", "300001"),
        ("WEBHOOK_MAX_DELAY_MS", "999"),
    ] {
        let message = with_variables(&[(name, value)]).unwrap_err().to_string();
        assert!(message.starts_with(&format!("{name}={value}: expected ")), "{message}");
    }
    let message = with_file("in_flight = 'many'", &[]).unwrap_err().to_string();
    assert!(message.ends_with("in_flight = many: expected a whole number from 2 to 1048576"), "{message}");
}

#[test]
fn wrong_alert_rules_stop_the_start_and_say_what_to_write() {
    for (rules, expected) in [
        ("queue-lenght > 5", "unknown rule \"queue-lenght\"; did you mean \"queue-length\"?"),
        ("retry-rate > 20", "retry-rate: the threshold 20 is out of range; expected 0 to 1"),
        ("queue-length > 5 for ever", "queue-length: `for ever` is no duration"),
    ] {
        let message = with_variables(&[("ALDABA_ALERT_RULES", rules)]).unwrap_err().to_string();
        assert!(message.starts_with(&format!("ALDABA_ALERT_RULES={rules}: {expected}")), "{message}");
    }
    let file = "alert_rules = ['queue-length > 500', 'endpoint-failing off']";
    let config = with_file(file, &[]).unwrap().config;
    let limits = config.engine.alert_rules.limits(aldaba_delivery::alert::AlertRule::QueueLength).unwrap();
    assert!((limits.threshold - 500.0).abs() < f64::EPSILON);
    assert_eq!(config.store.endpoint_failures, None);
}

#[test]
fn a_wrong_secret_is_refused_without_being_shown() {
    for (name, value) in [
        ("ALDABA_JWT_SECRET", "too-short"),
        ("ALDABA_JWT_SECRET", "x"),
        ("ALDABA_JWT_SECRET", "31 bytes, one fewer than needed"),
        ("ALDABA_ENCRYPTION_KEY", "too-short"),
        ("ALDABA_ENCRYPTION_KEY", "c2hvcnQ="),
        ("ALDABA_DATABASE_URL", "postgres://u:too-short@db/a"),
        ("ALDABA_EGRESS_PROXY", "ftp://u:too-short@proxy:3128"),
        ("ALDABA_EGRESS_PROXY", "http://u:too-short@proxy"),
    ] {
        let message = with_variables(&[(name, value)]).unwrap_err().to_string();
        let start = format!("{name}=(hidden): ");
        let why = message.strip_prefix(&start).unwrap_or_else(|| panic!("{message}"));
        assert!(why.starts_with("expected ") || why.starts_with("PostgreSQL comes "), "{message}");
        assert!(!message.contains("too-short"), "{message}");
    }
    let url = ("ALDABA_OTLP_URL", "http://u:too-short@collector:4318");
    let message = with_variables(&[url]).unwrap_err().to_string();
    assert!(
        message.starts_with("ALDABA_OTLP_URL=(hidden): credentials belong into `otlp_headers`"),
        "{message}"
    );
    assert!(!message.contains("too-short"), "{message}");
    let message = with_file("jwt_secret = 'too-short\n", &[]).unwrap_err().to_string();
    assert!(!message.contains("too-short"), "{message}");
    let loaded = with_variables(&[("ALDABA_JWT_SECRET", "32 bytes, just as many as needed")]).unwrap();
    assert!(loaded.config.jwt_secret.is_some());
    assert!(!format!("{loaded:?}").contains("just as many"));
    assert!(loaded.warnings.is_empty());
}

#[test]
fn postgresql_is_refused_by_name_for_now() {
    let message = with_variables(&[("ALDABA_DATABASE_URL", "postgres://db")]).unwrap_err().to_string();
    assert!(message.contains("PostgreSQL comes with a later version"), "{message}");
}

#[test]
fn an_unknown_key_or_a_broken_file_stops_the_start() {
    let message = with_file("lissten = '127.0.0.1:1'", &[]).unwrap_err().to_string();
    assert!(message.ends_with("there is no setting `lissten`; did you mean `listen`?"), "{message}");
    let message = with_file("colour = 'red'", &[]).unwrap_err().to_string();
    assert!(message.contains("there is no setting `colour`; the settings are: listen, data"), "{message}");
    let message = with_file("in_flight = 3\nlisten = \n", &[]).unwrap_err().to_string();
    assert!(message.contains("aldaba.toml, line 2: "), "{message}");
    let missing = Sources { file: Some("no/such/file.toml".into()), ..Sources::default() };
    assert!(load(&missing).unwrap_err().to_string().contains("no/such/file.toml"));
}

#[test]
fn a_variable_that_no_setting_reads_is_a_warning() {
    let loaded = with_variables(&[("ALDABA_LISTENS", "x"), ("HOME", "/")]).unwrap();
    assert_eq!(
        loaded.warnings,
        ["no setting reads the variable ALDABA_LISTENS; did you mean ALDABA_LISTEN?"]
    );
    let warnings = |name: &str| with_variables(&[(name, "x")]).unwrap().warnings.join("");
    assert_eq!(warnings("ALDABA_COLOUR"), "no setting reads the variable ALDABA_COLOUR");
    assert!(warnings("ALDABA_ALLOWED_NETWORKS").ends_with("did you mean ALDABA_ALLOW_NETWORKS?"));
    assert!(warnings("ALDABA_TOKENS").ends_with("did you mean ALDABA_TOKEN?"));
}

#[test]
fn the_documents_own_variables_are_read_from_the_environment_or_the_file() {
    let loaded = with_file("webhook_max_attempts = 5", &[("RETRY_STOP_DATE_AFTER_MINUTES", "3")]).unwrap();
    assert_eq!(loaded.config.overrides.job_attempts, 5);
    assert_eq!(loaded.config.overrides.stop_after, Duration::from_secs(180));
    let loaded = with_variables(&[("WEBHOOK_RETRY_INTERVAL_MS", "45000")]).unwrap();
    assert_eq!(loaded.config.engine.sweep_interval, Duration::from_secs(45));
}

#[test]
fn dead_letters_can_be_kept_until_they_are_removed() {
    let dead = |value| with_variables(&[("ALDABA_DEAD_LETTER_DAYS", value)]).unwrap().config.engine.retention;
    assert_eq!(dead("0").defaults.dead, None);
    assert_eq!(dead("7").defaults.dead, Some(Duration::from_secs(7 * 86_400)));
}

#[test]
fn an_encryption_key_is_read_as_hexadecimal_or_base64() {
    let hex = "0f".repeat(32);
    let base64 = BASE64_STANDARD.encode([15; 32]);
    assert_eq!(encryption_key(&hex), Some([15; 32]));
    assert_eq!(encryption_key(&base64), Some([15; 32]));
}

#[test]
fn a_proxy_is_read_and_its_password_never_shown() {
    let loaded = with_variables(&[("ALDABA_EGRESS_PROXY", "socks5://user:too-short@proxy:1080")]).unwrap();
    assert!(loaded.config.egress_proxy.is_some());
    assert!(!format!("{loaded:?}").contains("too-short"));
    // The environment's own proxies are for others.
    let loaded = with_variables(&[("HTTP_PROXY", "http://p:1"), ("ALL_PROXY", "http://p:1")]).unwrap();
    assert!(loaded.config.egress_proxy.is_none() && loaded.warnings.is_empty());
}

#[test]
fn a_log_filter_that_would_log_nothing_is_refused_with_what_was_probably_meant() {
    for (value, meant) in [
        ("inof", "info"),
        ("wran", "warn"),
        ("info,aldaba_enigne=debug", "aldaba_engine"),
        ("info,aldaba_engine=debgu", "debug"),
        ("aldaba-engine=debug", "aldaba_engine"),
    ] {
        let message = with_variables(&[("ALDABA_LOG", value)]).unwrap_err().to_string();
        assert!(message.starts_with(&format!("ALDABA_LOG={value}: expected a level")), "{message}");
        assert!(message.ends_with(&format!("; did you mean `{meant}`?")), "{message}");
    }
    for value in ["hyper", "aldaba_shop=info", ",", "info;debug"] {
        assert!(with_variables(&[("ALDABA_LOG", value)]).is_err(), "{value}");
    }
    for value in [
        "info",
        "WARN",
        "off",
        "info,",
        "info,aldaba_engine=debug",
        "warn,aldaba_engine::wire=trace,hyper=debug",
    ] {
        assert_eq!(with_variables(&[("ALDABA_LOG", value)]).unwrap().config.log, value);
    }
}

#[test]
fn a_misspelt_word_of_a_setting_is_suggested() {
    for (name, value, meant) in
        [("ALDABA_LOG_FORMAT", "jsno", "json"), ("ALDABA_WIRE_PROFILE", "standart", "standard")]
    {
        let message = with_variables(&[(name, value)]).unwrap_err().to_string();
        assert!(message.ends_with(&format!("did you mean `{meant}`?")), "{message}");
    }
    let message = with_variables(&[("ALDABA_LOG_FORMAT", "xml")]).unwrap_err().to_string();
    assert!(message.ends_with("expected text or json"), "{message}");
}

#[test]
fn a_name_to_listen_on_is_resolved_and_ipv4_comes_first() {
    let listen = |value| with_variables(&[("ALDABA_LISTEN", value)]).map(|loaded| loaded.config.listen);
    assert_eq!(listen("localhost:8071").unwrap().to_string(), "127.0.0.1:8071");
    assert_eq!(listen("[::1]:8071").unwrap().to_string(), "[::1]:8071");
    for wrong in ["localhost", ":8071", "localhost:http", "localhost:99999", "no.such.name.invalid:8071"] {
        assert!(listen(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_wrong_setting_of_traces_is_refused_with_what_to_do_and_headers_are_not_shown() {
    for (variable, value, said) in [
        ("ALDABA_OTLP_URL", "127.0.0.1:4318", "ALDABA_OTLP_URL=(hidden): expected http://host:4318"),
        ("ALDABA_OTLP_URL", "grpc://127.0.0.1:4317", "OTLP over gRPC (port 4317) is not spoken"),
        ("ALDABA_OTLP_URL", "http://user:pass@host", "credentials belong into `otlp_headers`"),
        ("ALDABA_OTLP_HEADERS", "hidden", "ALDABA_OTLP_HEADERS=(hidden): expected headers for the collector"),
        ("ALDABA_TRACE_SAMPLE", "1.5", "ALDABA_TRACE_SAMPLE=1.5: expected a number from 0 to 1"),
        ("ALDABA_TRACE_SAMPLE", "NaN", "expected a number from 0 to 1"),
        ("ALDABA_TRACE_SAMPLE", "1 %", "expected a number from 0 to 1"),
        ("ALDABA_TRACE_SERVICE", "my hooks", "expected 1 to 100 letters"),
        ("ALDABA_TRACE_HEADERS", "ture", "expected true or false; did you mean `true`?"),
        ("ALDABA_QUEUE_AGE_SECONDS", "0", "expected a whole number from 1 to 86400"),
    ] {
        let error = with_variables(&[(variable, value)]).unwrap_err().to_string();
        assert!(error.contains(said), "{error} lacks: {said}");
    }
    let good = [("ALDABA_OTLP_URL", "http://127.0.0.1:4318"), ("ALDABA_OTLP_HEADERS", "key=hidden")];
    let config = with_variables(&good).unwrap().config;
    assert!(config.traces.collector.is_some());
    assert!(!format!("{config:?}").contains("key=hidden"), "{config:?}");
}
