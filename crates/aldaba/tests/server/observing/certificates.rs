//! When certificates expire, seen from outside.

use crate::support::running::Running;
use crate::support::waiting::wait_until;
use aldaba::config::Config;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The first second of March in some years.
const YEARS: [(i32, f64); 3] = [(2033, 1_993_248_000.0), (2035, 2_056_320_000.0), (2040, 2_214_172_800.0)];

/// A certificate that ends in March of a year, and its key.
fn identity(year: i32) -> [String; 2] {
    let mut params = CertificateParams::new(vec!["example.com".into()]).unwrap();
    params.not_after = date_time_ymd(year, 3, 1);
    let key = KeyPair::generate().unwrap();
    [params.self_signed(&key).unwrap().pem(), key.serialize_pem()]
}

/// Looks often, and trusts an issuer.
fn watchful(ca_file: &Path) -> impl FnOnce(&mut Config) {
    let ca_file = ca_file.to_owned();
    move |config| {
        config.ca_file = Some(ca_file);
        config.engine.store_watch_interval = Some(Duration::from_millis(100));
        config.engine.alert_interval = Duration::from_millis(50);
    }
}

async fn endpoint(server: &Running, app: &str) -> String {
    let made = server.endpoint(app, json!({})).await;
    format!("/app/{app}/endpoint/{}", made["id"].as_str().unwrap())
}

async fn show(server: &Running, endpoint: &str, year: i32) {
    let body = json!({"identity": identity(year).concat()}).to_string();
    server.client.put(&format!("{endpoint}/mtls"), body).await.expect(204);
}

/// Waits until the metric has this value for a kind.
async fn expires(server: &Running, kind: &str, at: &str) {
    let line = format!("aldaba_certificate_expiry_timestamp_seconds{{kind=\"{kind}\"}} {at}");
    wait_until(&line, async || {
        let body = server.client.anonymous().get("//metrics").await.body;
        String::from_utf8_lossy(&body).lines().any(|found| found == line)
    })
    .await;
}

#[tokio::test]
async fn the_first_expiry_of_each_kind_of_certificate_is_a_metric_and_survives_a_restart() {
    let [(soon, soon_at), (late, late_at), (of_issuer, of_issuer_at)] = YEARS;
    let files = tempfile::tempdir().unwrap();
    let ca_file = files.path().join("ca.pem");
    std::fs::write(&ca_file, &identity(of_issuer)[0]).unwrap();
    let server = Running::with(watchful(&ca_file)).await;
    expires(&server, "ca_file", &of_issuer_at.to_string()).await;
    expires(&server, "client", "NaN").await;
    let app = server.application().await;
    let (first, second) = (endpoint(&server, &app).await, endpoint(&server, &app).await);
    show(&server, &first, late).await;
    show(&server, &second, soon).await;
    let shown = server.client.get(&format!("{second}/mtls")).await.expect(200);
    assert_eq!(shown["expiresAt"], "2033-03-01T00:00:00.000000Z");
    expires(&server, "client", &soon_at.to_string()).await;
    // Another secret of the endpoint changes nothing about that.
    server.client.post(&format!("{second}/secret/rotate"), "{}").await;
    server.client.patch(&second, json!({"description": "a"}).to_string()).await.expect(200);
    let server = Running::within(server.stop().await, watchful(&ca_file)).await;
    expires(&server, "client", &soon_at.to_string()).await;
    server.client.delete(&format!("{second}/mtls")).await.expect(204);
    expires(&server, "client", &late_at.to_string()).await;
    server.client.delete(&format!("/app/{app}")).await.expect(204);
    expires(&server, "client", "NaN").await;
    server.stop().await;
}

#[tokio::test]
async fn certificates_of_a_folder_that_did_not_keep_their_ends_are_dated_at_the_start() {
    let [(soon, soon_at), (late, _), _] = YEARS;
    let files = tempfile::tempdir().unwrap();
    let ca_file = files.path().join("ca.pem");
    std::fs::write(&ca_file, &identity(late)[0]).unwrap();
    let server = Running::with(watchful(&ca_file)).await;
    let app = server.application().await;
    for year in [late, soon] {
        let endpoint = endpoint(&server, &app).await;
        show(&server, &endpoint, year).await;
    }
    expires(&server, "client", &soon_at.to_string()).await;
    let data = server.data();
    let folder = server.stop().await;
    let database = rusqlite::Connection::open(data.join("aldaba.db")).unwrap();
    let changed = database.execute("UPDATE endpoint SET certificate_expires_at = NULL", ()).unwrap();
    assert_eq!(changed, 2);
    assert_eq!(database.execute("DELETE FROM setting WHERE name = 'certificates-dated'", ()).unwrap(), 1);
    drop(database);
    let server = Running::within(folder, watchful(&ca_file)).await;
    expires(&server, "client", &soon_at.to_string()).await;
    server.stop().await;
}

#[tokio::test]
async fn an_organization_is_alerted_of_its_own_client_certificates_alone() {
    let files = tempfile::tempdir().unwrap();
    let ca_file = files.path().join("ca.pem");
    // It has ended, and is the operator's.
    std::fs::write(&ca_file, &identity(2020)[0]).unwrap();
    let server = Running::with(watchful(&ca_file)).await;
    let app = server.application().await;
    let endpoint = endpoint(&server, &app).await;
    show(&server, &endpoint, 2021).await;
    let [alert] = &server.client.list_until("/alert?state=firing", 1).await[..] else { panic!("one alert") };
    assert_eq!((&alert["rule"], &alert["scope"]), (&json!("certificate-expiring"), &json!("organization")));
    assert!(alert["value"].as_f64().unwrap() < 0.0, "it has ended: {alert}");
    let off = json!({"url": "https://example.com/hook", "disabled": true}).to_string();
    server.client.put(&endpoint, off).await.expect(200);
    let resolved = server.client.list_until("/alert?state=resolved", 1).await;
    assert_ne!(resolved[0]["resolvedAt"], Value::Null, "an endpoint that is off shows no certificate");
    server.stop().await;
}
