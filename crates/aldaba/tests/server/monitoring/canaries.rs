//! Nothing secret and no payload leaves by a log, a trace, the metrics, a mail, an alert or an operational webhook, whatever
//! happens.

use super::logs::LoggingServer;
use crate::sources::stage::{SECRET, now, standard};
use crate::support::canaries::Canaries;
use crate::support::client::Client;
use crate::support::collector::Collector;
use crate::support::receiver::Receiver;
use crate::support::running::ISSUED;
use crate::support::waiting::wait_until;
use aldaba::{JwtSecret, issue_token};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use test_servers::{Smtp, SmtpTls};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// The organization of the operator, which hears of the whole server.
const OPERATOR: &str = "org_00000000000SvixManagement00";

/// Answers each path with bytes of the test's choice, and closes the connection.
async fn raw_receiver(answers: Vec<(&'static str, String)>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answers = answers.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 16 * 1024];
                let read = stream.read(&mut head).await.unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let answer = answers.iter().find(|(path, _)| head.contains(path));
                let answer =
                    answer.map_or("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", |(_, answer)| answer);
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    address
}

fn text(of: &Value) -> &str {
    of.as_str().unwrap_or_else(|| panic!("{of} is no text"))
}

/// Receivers that answer in every way, with canaries wherever a receiver can put one.
async fn receivers(canaries: &mut Canaries) -> SocketAddr {
    let (body, phrase, header) =
        (canaries.plant("answer body"), canaries.plant("answer phrase"), canaries.plant("answer header"));
    let (location, garbage) = (canaries.plant("redirect location"), canaries.plant("answer garbage"));
    raw_receiver(vec![
        (
            "/refuses",
            format!("HTTP/1.1 503 {phrase}\r\nx-a: {header}\r\ncontent-length: {}\r\n\r\n{body}", body.len()),
        ),
        ("/gone", format!("HTTP/1.1 410 {phrase}\r\ncontent-length: {}\r\n\r\n{body}", body.len())),
        (
            "/redirects",
            format!("HTTP/1.1 307 {phrase}\r\nlocation: http://u:{location}@10.0.0.1/{location}?{location}\r\ncontent-length: 0\r\n\r\n"),
        ),
        ("/misleads", format!("HTTP/1.1 307 A\r\nlocation: http://[{location}\r\ncontent-length: 0\r\n\r\n")),
        ("/babbles", format!("{garbage} {garbage}\r\n\r\n{garbage}")),
        ("/lies", format!("HTTP/1.1 200 OK\r\ncontent-length: {garbage}\r\n\r\n")),
        ("/breaks", format!("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\nx-a: {header}\r\n\r\n{body}")),
        ("/waits", format!("HTTP/1.1 429 {phrase}\r\nretry-after: {header}\r\ncontent-length: 0\r\n\r\n")),
    ])
    .await
}

/// Endpoints with canaries in every secret part, under policies that behave differently.
async fn endpoints(client: &Client, app: &str, receivers: SocketAddr, canaries: &mut Canaries) {
    let (user, password) = (canaries.plant("url user"), canaries.plant("url password"));
    let (path, query) = (canaries.plant("url path"), canaries.plant("url query"));
    let key = canaries.plant("endpoint secret of 24 bytes");
    let secret = format!("whsec_{}", STANDARD.encode(&key));
    canaries.add("endpoint secret as text", &secret);
    let (header, profile_header) = (canaries.plant("endpoint header"), canaries.plant("profile header"));
    let profile = json!({"signature": {"scheme": "standard"}, "headers": {"x-profile": profile_header}});
    // Profiles have a form of their own; one that is refused is worth as much here.
    client.put("/profile/own", profile.to_string()).await;
    let paths = ["refuses", "gone", "redirects", "misleads", "babbles", "lies", "breaks", "waits", "takes"];
    let strict = json!({
        "name": "strict", "schedule": {"type": "list", "delays": ["50ms", "50ms", "50ms"]},
        "jitter": {"type": "none"}, "gate": {"type": "apart"}, "endpointFails": {"type": "whenExhausted"},
        "probe": null,
    });
    client.post("/policy", strict.to_string()).await.expect(201);
    for (place, policy) in ["quick", "job-status", "standard", "strict"].iter().enumerate() {
        for name in paths {
            let url = format!("http://{user}:{password}@{receivers}/{name}/{path}{place}?{query}={query}");
            let body = json!({
                "url": url, "secret": secret, "policy": policy, "headers": {"x-own": header},
                "ownerEmail": format!("owner{}@example.com", name.len() % 3),
            });
            client.post(&format!("/app/{app}/endpoint"), body.to_string()).await.expect(201);
        }
    }
    // Where nothing listens, and where nothing may be sent.
    for host in ["127.0.0.1:1", "10.0.0.1", "no.such.name.invalid"] {
        let url = format!("http://{user}:{password}@{host}/{path}?{query}");
        let body = json!({"url": url, "secret": secret, "policy": "quick"});
        client.post(&format!("/app/{app}/endpoint"), body.to_string()).await;
    }
    let bad = json!({"url": format!("ftp://{user}:{password}@x/{path}?{query}"), "secret": key});
    client.post(&format!("/app/{app}/endpoint"), bad.to_string()).await.expect(422);
}

/// Requests with canaries in all that callers send: good ones and bad ones.
async fn requests(client: &Client, app: &str, receivers: SocketAddr, canaries: &mut Canaries) {
    let (payload, key) = (canaries.plant("payload"), canaries.plant("idempotency key"));
    let (header, field) = (canaries.plant("message header"), canaries.plant("unknown field"));
    let schema = json!({"1": {"type": "object", "properties": {"a": {"type": "integer"}}}});
    let described = json!({"description": "", "validate": true, "schemas": schema}).to_string();
    client.put("/event-type/checked", described).await;
    let messages = format!("/app/{app}/msg");
    for (event_type, more) in
        [("a", json!({})), ("b", json!({"headers": {"x-a": header}})), ("checked", json!({}))]
    {
        let mut body = json!({"eventType": event_type, "payload": {"a": payload}});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        for _ in 0..2 {
            client.post_once(&messages, &format!("{key}{event_type}"), body.to_string()).await;
        }
    }
    let unknown = json!({"eventType": "a", "payload": payload, (field.clone()): field});
    for body in [unknown.to_string(), format!("{{{payload}"), format!("[\"{payload}\"]"), payload.clone()] {
        for path in [messages.clone(), format!("{messages}/batch"), format!("/app/{app}/job"), "/app".into()]
        {
            client.post(&path, body.clone()).await;
        }
    }
    client.get(&format!("/app/{app}/msg?{field}={field}")).await;
    client.get(&format!("/{field}/{field}")).await;
    client.get(&format!("/app/{field}")).await;
    let (url_secret, own) = (canaries.plant("dispatch url"), canaries.plant("dispatch header"));
    let dispatch = json!({
        "url": format!("http://{url_secret}:{url_secret}@{receivers}/refuses/{url_secret}?{url_secret}"),
        "payload": {"a": payload}, "headers": {"x-own": own}, "policy": "job-status",
    });
    client.post(&format!("/app/{app}/dispatch"), dispatch.to_string()).await.expect(202);
    let job = json!({
        "jobId": "1", "jobType": "a", "status": "failed", "error": payload, "result": {"a": payload},
        "webhookUrl": format!("http://{receivers}/refuses/{url_secret}?{url_secret}"),
    });
    client.post(&format!("/app/{app}/job"), job.to_string()).await;
}

/// Tokens and keys of all kinds, good ones and bad ones.
async fn credentials(client: &Client, app: &str, canaries: &mut Canaries) {
    canaries.add("token", client.authorization.as_deref().unwrap().trim_start_matches("Bearer "));
    let portal = client.post(&format!("/auth/app-portal-access/{app}"), "{}").await.expect(200);
    let token = text(&portal["token"]);
    canaries.add("portal token", token);
    client.with_token(token).get(&format!("/app/{app}")).await.expect(200);
    client.with_token(token).get("/app").await;
    client.with_token(token).post("/auth/logout", "").await.expect(204);
    client.with_token(token).get(&format!("/app/{app}")).await.expect(401);
    let bad = canaries.plant("wrong token");
    client.with_token(&bad).get("/app").await.expect(401);
    client.with_token(&format!("{token}{bad}")).get("/app").await.expect(401);
}

/// A source with verified, forged and broken requests.
async fn source(client: &Client, receivers: SocketAddr, canaries: &mut Canaries) {
    let (body, header) = (canaries.plant("inbound payload"), canaries.plant("inbound header"));
    let made = json!({"name": "a", "type": "standard-webhooks", "config": {"secret": SECRET}});
    let made = client.post("/ingest/source", made.to_string()).await;
    let made = if made.status == 201 { made.json() } else { panic!("{:?}", made.body) };
    canaries.add("source secret", SECRET);
    let url = text(&made["ingestUrl"]);
    let path = format!("//{}", url.split_once("//").unwrap().1.split_once('/').unwrap().1);
    canaries.add("source token", path.rsplit('/').find(|part| !part.is_empty()).unwrap());
    let target = json!({"url": format!("http://{receivers}/refuses/{body}"), "policy": "job-status"});
    let endpoint = format!("/ingest/source/{}/endpoint", text(&made["id"]));
    client.post(&endpoint, target.to_string()).await.expect(201);
    let nobody = client.anonymous();
    let event = json!({"type": "a", "data": body}).to_string();
    let mut headers = standard("webhook", SECRET, "msg_canary", now(), event.as_bytes());
    headers.push(("x-more".into(), header.clone()));
    for body in [event.clone(), event, body.clone()] {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        nobody.send(Method::POST, &path, &headers, Bytes::from(body)).await;
    }
    nobody.send(Method::POST, &path, &[("webhook-signature", &header)], Bytes::from(body)).await.expect(401);
    nobody.send(Method::POST, &format!("{path}{header}"), &[], Bytes::new()).await;
}

/// Hears all operational webhooks of the organization and, as the operator, those about the whole server.
async fn listeners(client: &Client, jwt_secret: &str, canaries: &mut Canaries) -> [Receiver; 2] {
    let token = issue_token(&JwtSecret::new(jwt_secret).unwrap(), OPERATOR.parse().unwrap(), ISSUED);
    canaries.add("token of the operator", &token);
    let heard = [Receiver::answering(200, "").await, Receiver::answering(200, "").await];
    for (client, receiver) in [client, &client.with_token(&token)].into_iter().zip(&heard) {
        let body = json!({"url": receiver.url("/operational")});
        client.post("/operational-webhook/endpoint", body.to_string()).await.expect(201);
    }
    heard
}

/// The answers of the alerts, and the metrics in both formats.
async fn answers(client: &Client) -> Vec<(&'static str, Vec<u8>)> {
    let alerts = client.get("/alert?limit=250").await;
    let count = alerts.expect(200)["data"].as_array().unwrap().len();
    assert!(count > 3, "{count} alerts");
    let metrics = async |accept: &str| {
        let reply =
            client.anonymous().send(Method::GET, "//metrics", &[("accept", accept)], Bytes::new()).await;
        assert!(reply.headers["content-type"].to_str().unwrap().starts_with(accept));
        reply.body.to_vec()
    };
    vec![
        ("alerts", alerts.body.to_vec()),
        ("metrics as text", metrics("text/plain").await),
        ("metrics as OpenMetrics", metrics("application/openmetrics-text").await),
    ]
}

async fn busy_scenario(format: &str) {
    let mut canaries = Canaries::default();
    let mut collector = Collector::start().await;
    let mail_password = canaries.plant("password of the mail server");
    let smtp = Smtp::start_with(SmtpTls::None, "", Some(("hooks", &mail_password)));
    let smtp_url = format!("smtp://hooks:{mail_password}@127.0.0.1:{}", smtp.port());
    let headers = canaries.plant("collector header");
    let collector_url = collector.url();
    let collector_headers = format!("x-key={headers}");
    let (jwt_secret, encryption_key) = (canaries.plant("jwt secret of the server"), "c4".repeat(32));
    canaries.add("encryption key", &encryption_key);
    let jwt_secret = format!("{jwt_secret}{jwt_secret}");
    let server = LoggingServer::start(&[
        ("ALDABA_LOG", "trace"),
        ("ALDABA_LOG_FORMAT", format),
        ("ALDABA_OTLP_URL", &collector_url),
        ("ALDABA_OTLP_HEADERS", &collector_headers),
        ("ALDABA_TRACE_SAMPLE", "1"),
        ("ALDABA_TRACE_HEADERS", "true"),
        ("ALDABA_SMTP_URL", &smtp_url),
        ("ALDABA_MAIL_FROM", "hooks@example.com"),
        ("ALDABA_OPERATOR_EMAIL", "operations@example.com"),
        ("ALDABA_MAIL_DELAY_SECONDS", "1"),
        ("ALDABA_ALERT_RULES", "disk-space < 1000000000000000 for 0s; queue-length > 0 for 0s"),
        ("ALDABA_ALERT_INTERVAL_SECONDS", "1"),
        ("ALDABA_JWT_SECRET", &jwt_secret),
        ("ALDABA_ENCRYPTION_KEY", &encryption_key),
    ]);
    let (client, app) = (&server.client, server.application().await);
    let listeners = listeners(client, &jwt_secret, &mut canaries).await;
    let receivers = receivers(&mut canaries).await;
    endpoints(client, &app, receivers, &mut canaries).await;
    requests(client, &app, receivers, &mut canaries).await;
    credentials(client, &app, &mut canaries).await;
    source(client, receivers, &mut canaries).await;
    // Every endpoint under these policies has failed for good by then.
    wait_until("many are dead", async || {
        let dead = client.get("/dead-letter?limit=250").await.expect(200);
        dead["data"].as_array().unwrap().len() >= 12
    })
    .await;
    // To each owner, a digest among them, and to the operator.
    let mailed =
        |to: &str| smtp.mails().iter().filter(|mail| mail.contains(&format!("\"to\": [\"{to}"))).count();
    wait_until("mails", async || {
        ["owner0", "owner1", "owner2", "operations"].iter().all(|to| mailed(to) > 0)
    })
    .await;
    let mails = smtp.mails().join("\n");
    assert!(mails.contains("messages about your webhooks"), "a digest: {mails}");
    collector.all_within(Duration::from_secs(2)).await;
    let (log, spans) = (server.log(), collector.bodies.concat());
    assert!(log.matches("Webhook delivery failed").count() > 40, "it was busy: {log}");
    assert!(log.contains("DEBUG") && log.contains("request"), "it says all that it can: {log}");
    assert!(collector.spans.len() > 60, "{}", collector.spans.len());
    let mut outputs = answers(client).await;
    outputs.extend([("the log", log.into_bytes()), ("traces", spans), ("mails", mails.into_bytes())]);
    for (name, mut receiver) in ["operational webhooks", "those of the operator"].into_iter().zip(listeners) {
        let heard = receiver.all_there();
        assert!(!heard.is_empty(), "{name}");
        let bodies =
            heard.iter().flat_map(|arrival| [format!("{:?}", arrival.headers).into(), arrival.body.clone()]);
        outputs.push((name, bodies.collect::<Vec<Bytes>>().concat()));
    }
    let outputs: Vec<_> = outputs.iter().map(|(name, bytes)| (*name, bytes.as_slice())).collect();
    let found = canaries.found_in(&outputs);
    assert!(found.is_empty(), "{} found:\n{}", found.len(), found.join("\n"));
    // What is looked for can be found: the receivers got all of it, and an owner can read it.
    let attempts = client.get(&format!("/app/{app}/attempt/msg/{}", any_message(client, &app).await)).await;
    assert!(!canaries.found_in(&[("attempts", &attempts.body)]).is_empty());
    assert!(server.folder().join("aldaba-data").exists());
}

async fn any_message(client: &Client, app: &str) -> String {
    let messages = client.get(&format!("/app/{app}/msg")).await.expect(200);
    text(&messages["data"][0]["id"]).to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_payload_is_in_anything_that_tells_of_the_server_with_a_log_of_text() {
    busy_scenario("text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_and_no_payload_is_in_anything_that_tells_of_the_server_with_a_log_of_json() {
    busy_scenario("json").await;
}
