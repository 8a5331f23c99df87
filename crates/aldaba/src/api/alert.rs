//! Alerts: what fires, what has been resolved, and the rules.

use crate::api::request::ids::Ids;
use crate::api::request::json::{self, Moment, Text};
use crate::api::response::page::PageQuery;
use crate::api::routing::auth::Access;
use crate::api::routing::route::{Form, Route};
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_api::value::Shows;
use aldaba_api::{AlertRuleView, AlertRules, AlertRulesView, AlertView};
use aldaba_delivery::alert::{AlertRule, AlertScope};
use aldaba_delivery::{AlertId, Language, format_duration};
use aldaba_engine::{AlertSettings, management};
use aldaba_store::{Alert, AlertsQuery, ListRange, Order, TimeRange};
use axum::extract::State;
use axum::response::Response;
use http::StatusCode;

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
            .lists::<aldaba_api::Alert>(),
        Route::get("/alert/rule", Access::Read, rules)
            .named("v1.alert.list-rules", "Lists the rules in force, with their limits")
            .answers::<AlertRules>(StatusCode::OK),
        Route::get("/alert/{alert_id}", Access::Read, show)
            .named("v1.alert.get", "Shows an alert")
            .answers::<aldaba_api::Alert>(StatusCode::OK),
        Route::post("/alert/{alert_id}/acknowledge", Access::Manage, acknowledge)
            .named(
                "v1.alert.acknowledge",
                "Says that somebody has taken note of an alert; it goes on firing until it is resolved",
            )
            .answers::<aldaba_api::Alert>(StatusCode::OK),
    ]
}

fn render(alert: &Alert) -> impl Shows<aldaba_api::Alert> {
    let Alert { id, org, app, endpoint, rule, value, threshold, .. } = alert;
    let scope = match endpoint {
        Some(_) => AlertScope::Endpoint,
        None if *org == management() => AlertScope::Server,
        None => AlertScope::Organization,
    };
    let texts = rule.texts(Language::English);
    AlertView {
        id: Text(*id),
        state: if alert.is_firing() { "firing" } else { "resolved" },
        rule: rule.name(),
        scope: scope.name(),
        severity: rule.severity().name(),
        title: texts.title(),
        what_to_do: texts.what_to_do(),
        value: *value,
        threshold: *threshold,
        comparison: rule.comparison().sign(),
        app_id: app.map(Text),
        endpoint_id: endpoint.map(Text),
        fired_at: Moment(alert.fired_at),
        resolved_at: alert.resolved_at.map(Moment),
        acknowledged_at: alert.acknowledged_at.map(Moment),
        acknowledged_by: alert.acknowledged_by.as_deref(),
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
    let AlertSettings { rules, interval } = api.engine.alert_settings();
    let data = AlertRule::ALL.into_iter().map(|rule| {
        let (limits, texts) = (rules.limits(rule), rule.texts(Language::English));
        AlertRuleView {
            rule: rule.name(),
            enabled: limits.is_some(),
            source: rules.source(rule).name(),
            scopes: rule.scopes().iter().map(|scope| scope.name()).collect::<Vec<_>>(),
            severity: rule.severity().name(),
            title: texts.title(),
            meaning: texts.meaning(),
            what_to_do: texts.what_to_do(),
            metric: rule.metric(),
            unit: rule.unit().name(),
            comparison: rule.comparison().sign(),
            threshold: limits.map(|limits| limits.threshold),
            resolve: limits.map(|limits| limits.resolve),
            r#for: limits.map(|limits| format_duration(limits.hold)),
            window: limits.and_then(|limits| limits.window).map(format_duration),
        }
    });
    let interval_seconds = interval.as_secs();
    let body = AlertRulesView { data: data.collect::<Vec<_>>(), interval_seconds };
    json::answer(StatusCode::OK, &body)
}
