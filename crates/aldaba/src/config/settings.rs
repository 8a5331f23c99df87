//! The table of settings.

use super::values::{
    LOG_WORDS, address, api_url, days, encryption_key, is_log_filter, is_service_name, networks, sender,
    size, unresolved,
};
use super::{Config, LogFormat, PREFIX, ProxyHeaders, Secret, UnknownFields};
use crate::JwtSecret;
use crate::api::nearest;
use crate::mail::SmtpUrl;
use aldaba_api::names;
use aldaba_delivery::BUILTIN_PROFILES;
use aldaba_delivery::Language;
use aldaba_delivery::alert::{AlertRules, MAX_JUDGING_GAP};
use aldaba_engine::{Collector, CollectorUrl, SampleRate};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// One row of the table.
#[derive(Debug)]
pub struct Setting {
    /// As in the file; `ALDABA_` and the same in capitals is the variable.
    pub key: &'static str,
    /// Empty: unset.
    pub default: &'static str,
    /// What it does, and what happens at the limit.
    pub about: &'static str,
    pub kind: Kind,
    /// Its value is not shown in messages.
    pub secret: bool,
    /// Words to suggest for a misspelt value, or a part of it.
    pub words: &'static [&'static str],
    /// Whether a running server takes another value from its file when it is told to reload.
    pub reloaded: bool,
    /// Says why a value is invalid, if the expected form does not.
    pub explain: fn(&str) -> Option<String>,
}

#[derive(Debug)]
pub enum Kind {
    Number { least: u64, most: u64, set: fn(&mut Config, u64) },
    Text { expected: &'static str, set: fn(&mut Config, &str) -> Option<()> },
}

impl Setting {
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.key.to_uppercase())
    }

    pub fn expected(&self) -> String {
        match self.kind {
            Kind::Number { least, most, .. } => format!("a whole number from {least} to {most}"),
            Kind::Text { expected, .. } => expected.to_owned(),
        }
    }

    /// Why a value is invalid.
    pub(super) fn refusal(&self, value: &str) -> String {
        (self.explain)(value.trim()).unwrap_or_else(|| format!("expected {}", self.expected()))
    }

    /// Adds its own reasons for invalid values.
    const fn explained(self, explain: fn(&str) -> Option<String>) -> Self {
        Self { explain, ..self }
    }

    /// The word that an invalid value was probably meant to have.
    pub(super) fn suggestion(&self, value: &str) -> Option<&'static str> {
        let parts = value.split([',', '=']).map(str::trim);
        parts.filter(|part| !self.words.contains(part)).find_map(|part| nearest(part, self.words))
    }

    /// A running server takes it from its file when it is told to.
    const fn reloaded(self) -> Self {
        Self { reloaded: true, ..self }
    }

    /// Adds words to suggest.
    const fn knowing(self, words: &'static [&'static str]) -> Self {
        Self { words, ..self }
    }

    pub(super) fn apply(&self, config: &mut Config, value: &str) -> Option<()> {
        match self.kind {
            Kind::Number { least, most, set } => {
                let number = value.trim().parse().ok().filter(|n| (least..=most).contains(n))?;
                set(config, number);
                Some(())
            }
            Kind::Text { set, .. } => set(config, value.trim()),
        }
    }
}

const fn text(
    key: &'static str,
    default: &'static str,
    expected: &'static str,
    about: &'static str,
    set: fn(&mut Config, &str) -> Option<()>,
) -> Setting {
    Setting {
        key,
        default,
        about,
        kind: Kind::Text { expected, set },
        secret: false,
        words: &[],
        reloaded: false,
        explain: |_| None,
    }
}

const fn secret(
    key: &'static str,
    expected: &'static str,
    about: &'static str,
    set: fn(&mut Config, &str) -> Option<()>,
) -> Setting {
    Setting {
        key,
        default: "",
        about,
        kind: Kind::Text { expected, set },
        secret: true,
        words: &[],
        reloaded: false,
        explain: |_| None,
    }
}

const fn number(
    key: &'static str,
    default: &'static str,
    (least, most): (u64, u64),
    about: &'static str,
    set: fn(&mut Config, u64),
) -> Setting {
    Setting {
        key,
        default,
        about,
        kind: Kind::Number { least, most, set },
        secret: false,
        words: &[],
        reloaded: false,
        explain: |_| None,
    }
}

pub const SETTINGS: &[Setting] = &[
    text(
        "listen",
        "127.0.0.1:8071",
        "an address and a port, such as 127.0.0.1:8071, [::]:8071 or localhost:8071",
        "Where the API is served. Port 0 takes a free one; the address is printed at the start. A name is resolved at the \
         start, by the machine's own resolver: of several addresses the first IPv4 one is taken, else the first.",
        |c, v| address(v).map(|address| c.listen = address),
    )
    .explained(unresolved),
    text(
        "data",
        "./aldaba-data",
        "a folder",
        "The data folder: database, lock and secrets. Made with mode 0700 when it is missing. A second \
         server on the same folder is refused at its start.",
        |c, v| (!v.is_empty() && !Path::new(v).is_file()).then(|| c.store.folder = v.into()),
    )
    .explained(|v| Path::new(v).is_file().then(|| "it is a file; expected a folder".into())),
    text(
        "tls_certificate",
        "",
        "a file with certificates as PEM: the server's first, those of its issuers after it",
        "The certificate with which the API and `metrics_listen` speak TLS ([tls.md](tls.md)). Needs `tls_key`. It is read again when the \
         file changes. Unset: no TLS.",
        |c, v| (!v.is_empty()).then(|| c.tls_certificate = Some(v.into())),
    )
    .reloaded(),
    text(
        "tls_key",
        "",
        "a file with the private key as PEM, without a passphrase (PKCS#8, PKCS#1 or SEC1)",
        "The private key of `tls_certificate`: RSA, ECDSA or Ed25519. It may be the same file.",
        |c, v| (!v.is_empty()).then(|| c.tls_key = Some(v.into())),
    )
    .reloaded(),
    text(
        "trusted_proxies",
        "",
        "networks separated by commas, such as 10.1.0.0/16,::1/128",
        "Networks of proxies in front of this server. Only of them the headers of `proxy_headers` are believed \
         ([tls.md](tls.md#behind-a-proxy)), and `connections_per_address` counts the requests of their clients instead of their connections. \
         Unset: none.",
        |c, v| networks(v).map(|networks| c.trusted_proxies = networks),
    )
    .reloaded(),
    text(
        "proxy_headers",
        "x-forwarded",
        "x-forwarded or forwarded",
        "The headers in which trusted proxies name their client: `x-forwarded` for `X-Forwarded-For`, `-Proto` and `-Host`, \
         `forwarded` for `Forwarded` (RFC 7239). The other kind is ignored.",
        |c, v| {
            c.proxy_headers = match v {
                "x-forwarded" => ProxyHeaders::XForwarded,
                "forwarded" => ProxyHeaders::Forwarded,
                _ => return None,
            };
            Some(())
        },
    )
    .reloaded()
    .knowing(&["x-forwarded", "forwarded"]),
    text(
        "metrics_listen",
        "",
        "an address and a port, such as 127.0.0.1:9071, [::]:9071 or localhost:9071",
        "Where `/metrics` is served and nothing else: with `metrics_token` where that is set, else to anybody who reaches it \
         ([metrics.md](metrics.md)). Unset: where the API listens, openly if that is a loopback address, else with `metrics_token`.",
        |c, v| address(v).map(|address| c.metrics_listen = Some(address)),
    )
    .explained(unresolved),
    secret(
        "metrics_token",
        "a text of at least 16 characters without spaces; `openssl rand -hex 32` makes one",
        "The token that `/metrics` needs, as `Authorization: Bearer`. Unset: none at `metrics_listen` and on a loopback address; \
         elsewhere the metrics are refused.",
        |c, v| {
            let is_token = v.len() >= 16 && v.bytes().all(|byte| byte.is_ascii_graphic());
            is_token.then(|| c.metrics_token = Some(Secret(v.to_owned())))
        },
    )
    .reloaded(),
    secret(
        "database_url",
        "nothing: PostgreSQL comes with a later version; leave it out to use the embedded database",
        "For PostgreSQL, which this version cannot use yet: setting it stops the start.",
        |_, _| None,
    )
    .explained(|_| {
        Some("PostgreSQL comes with a later version; leave the setting out to use the embedded database".into())
    }),
    secret(
        "jwt_secret",
        "a text of at least 32 bytes; `openssl rand -hex 32` makes one",
        "Signs and checks API tokens (HS256). Unset: `jwt.secret` in the data folder, made at the first \
         start. Changing it makes every token invalid, and changes the `encryption_key` that is derived from it.",
        |c, v| JwtSecret::new(v).ok().map(|secret| c.jwt_secret = Some(secret)),
    ),
    secret(
        "encryption_key",
        "32 bytes, as 64 hexadecimal digits or as standard base64",
        "Encrypts endpoint secrets at rest. Unset: derived (HKDF-SHA256) from `jwt_secret` where that is \
         set, else `encryption.key` in the data folder, made at the first start. A server with another key \
         than the one its database was made with refuses to start.",
        |c, v| encryption_key(v).map(|key| c.encryption_key = Some(Secret(key))),
    ),
    text(
        "public_url",
        "",
        "the beginning of a URL, such as https://hooks.example.com",
        "Where browsers reach this server, for links into the portal and in mails. Unset: the scheme and the host of \
         the request.",
        |c, v| api_url(v).ok().map(|_| c.public_url = Some(v.to_owned())),
    )
    .reloaded(),
    secret(
        "smtp_url",
        "smtp://[user:password@]host[:port] or smtps://[user:password@]host[:port]",
        "The mail server that mails to owners of endpoints and to the operator leave through; [mail.md](mail.md) says what is \
         sent. Needs `mail_from`. Port: 465 for `smtps`, 587 for `smtp` with a user, else 25. With `?starttls=` \
         an `smtp` URL says `required`, `opportunistic` or `never`; `required` is the default where a password would go over a \
         network, and `opportunistic` is refused there; elsewhere that is the default. Unset: no mail is sent.",
        |c, v| SmtpUrl::parse(v).ok().map(|server| c.mail.server = Some(server)),
    )
    .reloaded()
    .explained(|v| SmtpUrl::parse(v).err()),
    text(
        "mail_from",
        "",
        "a mail address, such as hooks@example.com or Aldaba <hooks@example.com>",
        "Where mails come from. Needs `smtp_url`.",
        |c, v| sender(v).map(|from| c.mail.from = Some(from)),
    )
    .reloaded(),
    text(
        "operator_email",
        "",
        "a mail address, such as operations@example.com",
        "Who is told by mail what concerns the whole server. Needs `smtp_url`. Unset: nobody.",
        |c, v| names::email(v).ok().map(|()| c.mail.operator = Some(v.to_owned())),
    )
    .reloaded(),
    text(
        "mail_language",
        "en",
        "en (English) or es (Spanish)",
        "The language of mails. The metadata `mailLanguage` of an endpoint or of an application comes before it.",
        |c, v| Language::of_code(v).map(|language| c.mail.language = language),
    )
    .reloaded()
    .knowing(&Language::CODES),
    number(
        "mail_delay_seconds",
        "30",
        (0, 3600),
        "How long a mail about an endpoint waits for others to the same address: more than three become one.",
        |c, n| c.mail.delay = Duration::from_secs(n),
    ),
    text(
        "allow_networks",
        "",
        "networks separated by commas, such as 127.0.0.0/8,10.1.0.0/16,::1/128",
        "Private networks that deliveries may go to. Unset: none, so that a customer's URL cannot reach \
         into your network.",
        |c, v| networks(v).map(|networks| c.allow_networks = networks),
    ),
    secret(
        "egress_proxy",
        "http://[user:password@]host:port or socks5://[user:password@]host:port",
        "A proxy that all deliveries go through (HTTP CONNECT or SOCKS5). It is told the address that was \
         checked against `allow_networks`, never the name. Unset: none; `HTTP_PROXY` and the like are not \
         obeyed.",
        |c, v| v.parse().ok().map(|proxy| c.egress_proxy = Some(proxy)),
    ),
    text(
        "ca_file",
        "",
        "a file with certificates as PEM",
        "Issuers of certificates that deliveries and the mail server's encryption trust besides the public ones. A file that cannot be read \
         or holds none stops the start.",
        |c, v| (!v.is_empty()).then(|| c.ca_file = Some(v.into())),
    ),
    text(
        "wire_profile",
        "standard",
        "a built-in wire profile: branded, job-status, standard, svix or x-webhook",
        "The headers of deliveries to endpoints that name no profile; [profiles.md](profiles.md) has them.",
        |c, v| BUILTIN_PROFILES.contains(&v).then(|| c.engine.profile = v.to_owned()),
    )
    .knowing(&BUILTIN_PROFILES),
    text(
        "brand",
        "Aldaba",
        "1 to 32 letters, digits and signs that a header's name may hold",
        "What the headers of the wire profile `branded` begin with: `<brand>-Event-Id` and so on.",
        |c, v| v.parse().ok().map(|brand| c.engine.brand = brand),
    ),
    text(
        "log",
        "info",
        "a level (error, warn, info, debug, trace) or a filter such as info,aldaba_engine=debug",
        "What is logged, on standard error. Logs hold no secret, token, payload or URL query.",
        |c, v| is_log_filter(v).then(|| c.log = v.to_owned()),
    )
    .reloaded()
    .knowing(LOG_WORDS),
    text(
        "log_format",
        "text",
        "text or json",
        "One line of text or one JSON object for each event.",
        |c, v| {
            let format = match v {
                "text" => LogFormat::Text,
                "json" => LogFormat::Json,
                _ => return None,
            };
            c.log_format = format;
            Some(())
        },
    )
    .knowing(&["text", "json"]),
    // Somebody may have put a password into it.
    secret(
        "otlp_url",
        "the URL of an OpenTelemetry collector, such as http://127.0.0.1:4318",
        "Where [traces](monitoring.md#traces) are exported to: OTLP over HTTP, in protobuf; `/v1/traces` is appended. Unset: no traces. While the \
         collector is away, 4,096 spans wait; more are dropped.",
        |c, v| CollectorUrl::parse(v).ok().map(|url| c.traces.collector = Some(url)),
    )
    .explained(|v| CollectorUrl::parse(v).err().map(str::to_owned)),
    secret(
        "otlp_headers",
        "headers for the collector, such as api-key=abc,x-team=a",
        "Headers of the requests to the collector.",
        |c, v| Collector::headers(v).map(|_| c.traces.headers = Secret(v.to_owned())),
    ),
    text(
        "trace_sample",
        "0.01",
        "a number from 0 to 1",
        "The share of messages that are traced. A caller's `traceparent` decides for its own messages.",
        |c, v| v.parse().ok().and_then(SampleRate::new).map(|sample| c.traces.sample = sample),
    ),
    text(
        "trace_service",
        "aldaba",
        "1 to 100 letters, digits, dots, dashes and underscores",
        "The service's name in traces.",
        |c, v| is_service_name(v).then(|| c.traces.service = v.to_owned()),
    ),
    text(
        "trace_headers",
        "false",
        "true or false",
        "Whether all receivers get a `traceparent` header, so that their traces continue those of senders. It works without \
         `otlp_url`, too. A [wire profile](profiles.md#profiles-of-your-own) chooses it for its endpoints.",
        |c, v| v.parse().ok().map(|pass_on| c.traces.pass_on = pass_on),
    )
    .knowing(&["true", "false"]),
    text(
        "unknown_fields",
        "refuse",
        "refuse or ignore",
        "Fields of a body and parameters of a query that a route under /api/v1 does not know: 422 with the nearest known \
         name, or as if they had not been sent: then a misspelt `dryRun` starts a replay, and a misspelt filter of `discard` discards everything. Health checks and the URLs of sources ignore them always.",
        |c, v| {
            c.limits.unknown_fields = match v {
                "refuse" => UnknownFields::Refuse,
                "ignore" => UnknownFields::Ignore,
                _ => return None,
            };
            Some(())
        },
    )
    .knowing(&["refuse", "ignore"]),
    number(
        "max_connections",
        "4096",
        (1, 65_536),
        "Open API connections. At the limit the oldest that has not finished its first request's head is closed for a new one; \
         without such, the new one waits for a place, a second at most; then it is answered 503 with `Retry-After`, and closed.",
        |c, n| c.limits.connections = size(n),
    ),
    number(
        "connections_per_address",
        "1024",
        (0, 65_536),
        "Open API connections of one address (of one /64 block of IPv6). At the limit the oldest of that address that has not \
         finished its first request's head is closed for a new one; without such, the new one is answered 503 with \
         `Retry-After`, and closed. 0: any number. Behind a proxy, name it in `trusted_proxies`: then the requests \
         of each of its clients are counted.",
        |c, n| c.limits.connections_per_address = size(n),
    ),
    number(
        "header_seconds",
        "10",
        (1, 3600),
        "How long the head of a request may take, counted from the end of the former one. Then the \
         connection is closed, an idle one too.",
        |c, n| c.limits.header = Duration::from_secs(n),
    ),
    number(
        "progress_seconds",
        "10",
        (1, 3600),
        "How long a request's body (408) or the reading of an answer (connection closed) may stand still.",
        |c, n| c.limits.progress = Duration::from_secs(n),
    ),
    number(
        "payload_bytes",
        "1048576",
        (1024, 16 << 20),
        "The largest payload; a request may be 64 KiB larger. Beyond: 413, nothing is stored.",
        |c, n| c.limits.payload = size(n),
    ),
    number(
        "body_bytes",
        "67108864",
        (17 << 20, 1 << 40),
        "Bytes of request bodies in memory at once, each from when it comes until its answer. An organization may \
         hold half of them, a key or token of one application a quarter; a quarter is left to bodies of up to 64 KiB of those who hold little. \
         Beyond: 503 with `Retry-After`, nothing is stored; the body is not kept, and what is sent of it is thrown \
         away.",
        |c, n| c.limits.body_bytes = size(n),
    ),
    number(
        "answer_bytes",
        "134217728",
        (16 << 20, 1 << 40),
        "Bytes of answers larger than 128 KiB that have not been read yet. An organization may hold half of them, a \
         key or token of one application a quarter. Beyond: 503 with `Retry-After`.",
        |c, n| c.limits.answer_bytes = size(n),
    ),
    number(
        "organization_requests",
        "0",
        (0, 1_000_000),
        "Requests a second to the API that an organization may make; one that only reads (`GET`) counts as a \
         quarter, a batch of messages as its messages. Beyond: 429 `rate_limited` with `Retry-After`, nothing is \
         done. 0: any number.",
        |c, n| c.limits.rates.organization = u32::try_from(n).unwrap_or(u32::MAX),
    ),
    number(
        "application_requests",
        "0",
        (0, 1_000_000),
        "The same for each application: requests whose path names it.",
        |c, n| c.limits.rates.application = u32::try_from(n).unwrap_or(u32::MAX),
    ),
    number(
        "source_requests",
        "1000",
        (0, 1_000_000),
        "Requests a second that the door of one source takes. They count for no other limit of requests. Beyond: 429 \
         `rate_limited` with `Retry-After`, nothing is stored. 0: any number.",
        |c, n| c.limits.rates.source = u32::try_from(n).unwrap_or(u32::MAX),
    ),
    number(
        "request_burst_seconds",
        "1",
        (1, 3600),
        "How many seconds' worth of requests may be made at once by who has made none for so long.",
        |c, n| c.limits.rates.burst = Duration::from_secs(n),
    ),
    number(
        "organization_messages_per_day",
        "0",
        (0, 1 << 48),
        "Messages that an organization may send on a day (UTC). They are counted in the commit that stores them, \
         from when this is set. Beyond: 429 `quota_exceeded` with `Retry-After` until the day is over, nothing is \
         stored. 0: any number.",
        |c, n| c.engine.quotas.organization = (n > 0).then_some(n),
    ),
    number("application_messages_per_day", "0", (0, 1 << 48), "The same for each application.", |c, n| {
        c.engine.quotas.application = (n > 0).then_some(n);
    }),
    text(
        "alert_rules",
        "",
        "changes of alert rules, such as `queue-length > 500 for 5m; delivery-failure-rate off`",
        "Changes of the built-in alert rules, separated by `;`: another threshold, optionally with `resolve`, `for` and `over`, or \
         `off`; [alerts.md](alerts.md) has the rules. Unset: as built in.",
        |c, v| {
            let rules = AlertRules::parse(v).ok()?;
            c.store.endpoint_failures = rules.endpoint_failures();
            c.engine.alert_rules = Arc::new(rules.with_low_space(c.store.low_space_bytes));
            Some(())
        },
    )
    .reloaded()
    .explained(|v| AlertRules::parse(v).err().map(|error| error.to_string())),
    number(
        "alert_interval_seconds",
        "15",
        // Twice as long between two judgements is still short enough to say since when a value is beyond its threshold.
        (1, MAX_JUDGING_GAP.as_secs() / 2),
        "How often the alert rules are judged.",
        |c, n| c.engine.alert_interval = Duration::from_secs(n),
    )
    .reloaded(),
    number(
        "queue_age_seconds",
        "60",
        (1, 86_400),
        "How long an endpoint with due deliveries may wait for its turn before `GET /api/v1/health/ready` has a warning.",
        |c, n| c.limits.queue_age = Duration::from_secs(n),
    ),
    number(
        "shutdown_seconds",
        "30",
        (0, 3600),
        "How long requests in flight may take to end when the server is told to stop. Deliveries still in \
         flight then are sent again after the next start.",
        |c, n| c.shutdown = Duration::from_secs(n),
    )
    .reloaded(),
    number(
        "in_flight",
        "4096",
        (2, 1 << 20),
        "Deliveries on the wire at once, in all. More wait for their turn.",
        |c, n| c.engine.in_flight = size(n),
    ),
    number(
        "requests_per_origin",
        "128",
        (1, 1 << 20),
        "Deliveries of one organization on the wire at once to one origin (scheme, host and port), however many endpoints it \
         has there; of one application, half of it. More wait for their turn. As many connections are kept open to the \
         origin.",
        |c, n| {
            c.engine.requests_per_origin = size(n);
            c.pool.idle_per_origin = size(n);
        },
    ),
    number(
        "lane_start",
        "8",
        (1, 4096),
        "Deliveries on the wire at once to one endpoint, at the beginning.",
        |c, n| c.engine.lane_start = size(n),
    ),
    number(
        "lane_most",
        "64",
        (1, 4096),
        "The same, while its answers come quickly. More wait for their turn.",
        |c, n| c.engine.lane_most = size(n),
    ),
    number(
        "lane_buffer",
        "256",
        (1, 65_536),
        "Waiting deliveries of one endpoint that are kept in memory. The rest wait on disk.",
        |c, n| c.engine.lane_buffer = size(n),
    ),
    number(
        "lane_bytes",
        "16777216",
        (1 << 16, 1 << 40),
        "Memory for waiting deliveries of all endpoints together, payloads not counted. Beyond, an endpoint \
         keeps a few in memory.",
        |c, n| c.engine.lane_bytes = size(n),
    ),
    number(
        "lanes_awake",
        "10000",
        (1, 1 << 32),
        "Endpoints whose configuration is kept in memory for the next attempt. Beyond, those that only wait \
         read it again at their turn.",
        |c, n| c.engine.lanes_awake = size(n),
    ),
    number(
        "lane_idle_seconds",
        "60",
        (1, 86_400),
        "How long an endpoint with nothing to do stays in memory.",
        |c, n| c.engine.lane_idle = Duration::from_secs(n),
    ),
    number(
        "content_bytes",
        "33554432",
        (1 << 20, 1 << 40),
        "Payload bytes kept in memory for waiting deliveries. Beyond, they are read again at their turn.",
        |c, n| c.engine.content_bytes = size(n),
    ),
    number(
        "tenants",
        "10000",
        (1, 1 << 24),
        "Applications whose configuration is kept in memory. Beyond, they are read again.",
        |c, n| c.engine.tenants = size(n),
    ),
    number(
        "held_days",
        "30",
        (1, 3650),
        "How long a delivery may wait for an endpoint that has failed or was turned off. Then it ends with the \
         reason `expired`.",
        |c, n| c.engine.held = Duration::from_secs(n * 24 * 3600),
    ),
    number(
        "clock_trust_hours",
        "24",
        (1, 720),
        "How long a clock that was not trusted (more than a day ahead, or an hour behind) must run steadily to be trusted again. Until then nothing is \
         removed and nothing ends by time.",
        |c, n| c.engine.clock_trusted_after = Duration::from_secs(n * 3600),
    ),
    number(
        "idempotency_hours",
        "24",
        (24, 720),
        "How long an idempotency key is remembered, at least. It counts until it is removed, about a day later; a \
         repeat after that is a new request.",
        |c, n| c.engine.idempotency_kept = Duration::from_secs(n * 3600),
    ),
    number(
        "retention_days",
        "90",
        (1, 3650),
        "How long delivered deliveries are kept, with their attempts and messages, where the policy does not say; \
         and messages that went to nobody. Then they are removed, a few at a time.",
        |c, n| c.engine.retention.defaults.delivered = Some(days(n)),
    ),
    number(
        "dead_letter_days",
        "365",
        (0, 3650),
        "The same for deliveries in the dead letter. 0: until they are removed by hand.",
        |c, n| c.engine.retention.defaults.dead = (n > 0).then(|| days(n)),
    ),
    number(
        "counter_days",
        "30",
        (1, 3650),
        "How long the counters of each endpoint and minute are kept.",
        |c, n| {
            c.engine.retention.counters = days(n);
        },
    ),
    number(
        "audit_days",
        "365",
        (1, 3650),
        "How long rows of the audit log are kept. Then they are removed, a few at a time.",
        |c, n| c.engine.retention.audit = days(n),
    ),
    number(
        "endpoints_per_application",
        "10000",
        (1, 1_000_000),
        "Beyond: 409, nothing is stored.",
        |c, n| c.store.endpoints_per_application = size(n),
    ),
    number(
        "low_space_bytes",
        "268435456",
        (0, 1 << 50),
        "Free bytes on the disk below which no more messages are accepted: 507 with `Retry-After`. Deliveries \
         go on. Accepting resumes by itself: at once when `reserve_bytes` more than this are free, else when this \
         many have been free for 10 seconds.",
        |c, n| {
            c.store.low_space_bytes = n;
            c.engine.alert_rules = Arc::new(AlertRules::clone(&c.engine.alert_rules).with_low_space(n));
        },
    ),
    number(
        "reserve_bytes",
        "67108864",
        (0, 1 << 40),
        "The size of a file that is given up when room is low, so that results can still be written. It is made \
         again when `low_space_bytes` and as many bytes are free; until then the server runs without it.",
        |c, n| c.store.reserve_bytes = n,
    ),
    number(
        "queue_operations",
        "65536",
        (1024, 1 << 24),
        "Writes that may wait for the disk. Beyond: 503 with `Retry-After`, nothing is stored.",
        |c, n| c.store.queue_operations = size(n),
    ),
    number(
        "queue_bytes",
        "67108864",
        (17 << 20, 1 << 40),
        "Bytes of writes that may wait for the disk. Beyond: 503 with `Retry-After`, nothing is stored.",
        |c, n| c.store.queue_bytes = size(n),
    ),
    number(
        "queue_milliseconds",
        "500",
        (10, 60_000),
        "How long a message or a change may have to wait for the disk, as far as can be told: by the pace of \
         the last commits, and by how long the first one has waited. Beyond: 503 with `Retry-After`, nothing is \
         stored. The same when a request would wait for a processor for a quarter of it. Results of deliveries are \
         always taken.",
        |c, n| c.store.queue_wait = Duration::from_millis(n),
    ),
    number("readers", "4", (1, 256), "Threads that read from the database.", |c, n| {
        c.store.readers = size(n);
    }),
    number(
        "queue_reads",
        "4096",
        (16, 1 << 20),
        "Reads that may wait for a thread. Beyond: 503 with `Retry-After`.",
        |c, n| c.store.queue_reads = size(n),
    ),
    number("read_milliseconds", "1000", (100, 60_000), "How long one read may take. Beyond: 503.", |c, n| {
        c.store.read_limit = Duration::from_millis(n);
    }),
];
