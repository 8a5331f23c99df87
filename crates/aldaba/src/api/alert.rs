//! Alerts: what fires, what has been resolved, and the rules.

use crate::api::request::ids::Ids;
use crate::api::request::json;
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_delivery::alert::{AlertRule, AlertScope, Language};
use aldaba_delivery::{AlertId, AppId, EndpointId, Timestamp, format_duration};
use aldaba_engine::management;
use aldaba_store::{Alert, AlertsQuery, ListRange, Order, TimeRange};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

/// Rows that one request reads. A page that ends early can be continued from there.
const MAX_ROWS_WALKED: usize = 10_000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/alert", Access::Read, list)
            .named(
                "v1.alert.list",
                "Lists the alerts of the caller's organization or application, newest first",
            )
            .query(
                "state",
                Form::OneOf(&["firing", "resolved"]),
                "Only those that fire, or those that are resolved",
            )
            .query("rule", Form::OneOf(&AlertRule::NAMES), "Only alerts of this rule")
            .ordered()
            .lists::<AlertOut>(),
        Route::get("/alert/rule", Access::Read, rules)
            .named("v1.alert.list-rules", "Lists the rules in force, with their limits")
            .answers::<RulesOut>(StatusCode::OK),
        Route::get("/alert/{alert_id}", Access::Read, show)
            .named("v1.alert.get", "Shows an alert")
            .answers::<AlertOut>(StatusCode::OK),
        Route::post("/alert/{alert_id}/acknowledge", Access::Manage, acknowledge)
            .named(
                "v1.alert.acknowledge",
                "Says that somebody has taken note of an alert; it goes on firing until it is resolved",
            )
            .answers::<AlertOut>(StatusCode::OK),
    ]
}

/// One alert, from when it fires until it is resolved.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AlertOut {
    #[serde(serialize_with = "json::text")]
    #[schema(value_type = String)]
    id: AlertId,
    /// `firing` or `resolved`
    state: &'static str,
    rule: &'static str,
    /// `server`, `organization` or `endpoint`
    scope: &'static str,
    /// `warning` or `critical`
    severity: &'static str,
    /// What is wrong, in a few words.
    title: &'static str,
    what_to_do: &'static str,
    /// What was measured when it fired.
    value: f64,
    /// What the limit was then.
    threshold: f64,
    /// `>` or `<`: on which side of the threshold a value is bad.
    comparison: &'static str,
    /// Of the endpoint that it is about.
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    app_id: Option<AppId>,
    #[serde(serialize_with = "json::optional_text")]
    #[schema(value_type = Option<String>)]
    endpoint_id: Option<EndpointId>,
    #[serde(serialize_with = "json::time")]
    #[schema(value_type = String, format = DateTime)]
    fired_at: Timestamp,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    resolved_at: Option<Timestamp>,
    #[serde(serialize_with = "json::optional_time")]
    #[schema(value_type = Option<String>, format = DateTime)]
    acknowledged_at: Option<Timestamp>,
    /// Who has taken note of it, as the audit log names them.
    acknowledged_by: Option<String>,
}

/// The rules.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RulesOut {
    data: Vec<RuleOut>,
    /// How often they are judged.
    interval_seconds: u64,
}

/// A rule with its limits.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct RuleOut {
    rule: &'static str,
    /// `false`: the configuration turns it off.
    enabled: bool,
    /// `built-in` or `configuration`: where its limits come from.
    source: &'static str,
    /// What it is judged for: `server`, `organization`, `endpoint`.
    scopes: Vec<&'static str>,
    /// `warning` or `critical`
    severity: &'static str,
    title: &'static str,
    /// What is measured.
    meaning: &'static str,
    what_to_do: &'static str,
    /// The metric that has the value for the whole server; null where none has it.
    metric: Option<&'static str>,
    /// `ratio`, `number`, `seconds` or `bytes`
    unit: &'static str,
    /// `>` or `<`: on which side of the threshold a value is bad.
    comparison: &'static str,
    threshold: Option<f64>,
    /// An alert ends when the value is no longer beyond this one.
    resolve: Option<f64>,
    /// For how long the value must be bad before the rule fires, such as `1m`.
    #[serde(rename = "for")]
    hold: Option<String>,
    /// What a rate is over, such as `5m`.
    window: Option<String>,
}

fn render(alert: &Alert) -> AlertOut {
    let Alert { id, org, app, endpoint, rule, value, threshold, .. } = alert;
    let scope = match endpoint {
        Some(_) => AlertScope::Endpoint,
        None if *org == management() => AlertScope::Server,
        None => AlertScope::Organization,
    };
    let texts = rule.texts(Language::English);
    AlertOut {
        id: *id,
        state: if alert.is_firing() { "firing" } else { "resolved" },
        rule: rule.name(),
        scope: scope.name(),
        severity: rule.severity().name(),
        title: texts.title(),
        what_to_do: texts.what_to_do(),
        value: *value,
        threshold: *threshold,
        comparison: rule.comparison().sign(),
        app_id: *app,
        endpoint_id: *endpoint,
        fired_at: alert.fired_at,
        resolved_at: alert.resolved_at,
        acknowledged_at: alert.acknowledged_at,
        acknowledged_by: alert.acknowledged_by.clone(),
    }
}

async fn list(State(api): State<Api>, page: PageQuery<AlertId>, caller: Caller) -> Result<Response, Error> {
    let (range, order) = page.ask(page.order.unwrap_or(Order::Descending));
    let query = AlertsQuery {
        org: caller.org(),
        app: caller.app(),
        rule: page.query.text("rule").and_then(AlertRule::from_name),
        firing: page.query.text("state").map(|state| state == "firing"),
        part: ListRange { within: TimeRange::default(), page: range, order, walk: MAX_ROWS_WALKED },
    };
    let found = api.ask(&caller).alerts(query).await?;
    Ok(page.list_walked(found.items, found.stopped, |alert| alert.id).render(render))
}

async fn show(State(api): State<Api>, caller: Caller, Ids(id): Ids<String>) -> Result<Response, Error> {
    let alert = api.ask(&caller).alert(&id).await?;
    Ok(json::answer(StatusCode::OK, &render(&alert)))
}

/// One that is resolved, or that was acknowledged before, is shown as it is.
async fn acknowledge(
    State(api): State<Api>,
    caller: Caller,
    Ids(id): Ids<String>,
) -> Result<Response, Error> {
    let found = api.ask(&caller).alert(&id).await?;
    api.directory(&caller).acknowledge_alert(found.org, found.id).await?;
    let alert = api.ask(&caller).alert(&id).await?;
    Ok(json::answer(StatusCode::OK, &render(&alert)))
}

async fn rules(State(api): State<Api>) -> Response {
    let rules = api.engine.alert_rules();
    let data = AlertRule::ALL.into_iter().map(|rule| {
        let (limits, texts) = (rules.limits(rule), rule.texts(Language::English));
        RuleOut {
            rule: rule.name(),
            enabled: limits.is_some(),
            source: rules.source(rule).name(),
            scopes: rule.scopes().iter().map(|scope| scope.name()).collect(),
            severity: rule.severity().name(),
            title: texts.title(),
            meaning: texts.meaning(),
            what_to_do: texts.what_to_do(),
            metric: rule.metric(),
            unit: rule.unit().name(),
            comparison: rule.comparison().sign(),
            threshold: limits.map(|limits| limits.threshold),
            resolve: limits.map(|limits| limits.resolve),
            hold: limits.map(|limits| format_duration(limits.hold)),
            window: limits.and_then(|limits| limits.window).map(format_duration),
        }
    });
    let body = RulesOut { data: data.collect(), interval_seconds: api.engine.alert_interval().as_secs() };
    json::answer(StatusCode::OK, &body)
}
