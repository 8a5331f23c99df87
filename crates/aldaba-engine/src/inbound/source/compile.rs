//! Parses the settings of a source once, when they are set, so that no error is left for the time of a
//! request.

use super::settings::{HeaderCondition, SourceProblem, SourceSecrets, SourceSettings};
use super::types::{self, META, MICROSOFT_GRAPH};
use crate::inbound::forwarded::{BODY_HEADERS, ForwardedHeaders};
use aldaba_signature::inbound::{Inspector, Place, Recipe, Secret};
use http::HeaderName;
use std::time::Duration;
use zeroize::Zeroizing;

/// The parsed settings and secrets.
pub(super) struct CompiledSource {
    pub(super) inspector: Inspector,
    /// The `clientState` values that Microsoft Graph sends in place of a signature.
    pub(super) client_states: Vec<Zeroizing<String>>,
    pub(super) verify_token: Option<Zeroizing<String>>,
    /// Required headers with their allowed values; empty: any value.
    pub(super) conditions: Vec<(HeaderName, Vec<String>)>,
    pub(super) forward: Vec<HeaderName>,
}

/// All problems, in order of discovery.
#[derive(Default)]
struct ProblemList(Vec<SourceProblem>);

impl ProblemList {
    fn add(&mut self, path: &[&str], why: impl Into<String>) {
        self.0.push(SourceProblem::new(path, why));
    }
}

pub(super) fn compile(
    kind: &str,
    settings: &SourceSettings,
    secrets: &SourceSecrets,
) -> Result<CompiledSource, Vec<SourceProblem>> {
    let mut problems = ProblemList::default();
    // The `clientState` of Microsoft Graph is no signing key.
    let (client_states, keys) = match kind {
        MICROSOFT_GRAPH => (secrets.secrets.clone(), &[][..]),
        _ => (Vec::new(), &secrets.secrets[..]),
    };
    // An empty value would match senders that send none.
    if kind == MICROSOFT_GRAPH
        && (client_states.is_empty() || client_states.iter().any(|state| state.is_empty()))
    {
        let why = "this field is required: the `clientState` of the subscription";
        problems.add(&["config", "clientState"], why);
    }
    let verify_token = verify_token(kind, secrets, &mut problems);
    let conditions = conditions(&settings.filter_headers, &mut problems);
    let forward = forward(kind, settings, &mut problems);
    let inspector = match types::recipe(kind, settings, !keys.is_empty()) {
        Ok(recipe) => inspector(kind, recipe, keys, settings, &mut problems),
        Err(more) => {
            problems.0.extend(more);
            None
        }
    };
    match inspector {
        Some(inspector) if problems.0.is_empty() => {
            Ok(CompiledSource { inspector, client_states, verify_token, conditions, forward })
        }
        _ => Err(problems.0),
    }
}

fn verify_token(
    kind: &str,
    secrets: &SourceSecrets,
    problems: &mut ProblemList,
) -> Option<Zeroizing<String>> {
    let path = ["config", "verifyToken"];
    match (&secrets.verify_token, kind) {
        (None, META) => {
            problems.add(&path, "this field is required: the verify token that you enter at Meta");
        }
        (Some(token), META) if token.is_empty() => problems.add(&path, "must not be empty"),
        (Some(_), other) if other != META => {
            problems.add(&path, "is only for the type `meta`; remove it");
        }
        _ => {}
    }
    secrets.verify_token.clone()
}

fn inspector(
    kind: &str,
    recipe: Recipe,
    keys: &[Zeroizing<String>],
    settings: &SourceSettings,
    problems: &mut ProblemList,
) -> Option<Inspector> {
    if settings.tolerance_seconds.is_some() && !recipe.has_window() {
        problems.add(&["toleranceSeconds"], "this sender's signatures contain no timestamp; remove it");
    }
    let path = ["config", types::secret_field(kind)];
    if recipe.is_signed() && keys.is_empty() {
        problems.add(&path, "this field is required: the secret that verifies the sender's signatures");
        return None;
    }
    let mut secrets = Vec::with_capacity(keys.len());
    for text in keys {
        match Secret::parse_for(&recipe, text) {
            Ok(secret) => secrets.push(secret),
            Err(error) => {
                problems.add(&path, error.to_string());
                return None;
            }
        }
    }
    let inspector = Inspector::new(recipe, secrets);
    let inspector = inspector.map_err(|error| problems.add(&["config"], error.to_string())).ok()?;
    Some(match settings.tolerance_seconds {
        Some(seconds) => inspector.with_tolerance(Duration::from_secs(seconds.into())),
        None => inspector,
    })
}

fn conditions(given: &[HeaderCondition], problems: &mut ProblemList) -> Vec<(HeaderName, Vec<String>)> {
    let mut conditions = Vec::with_capacity(given.len());
    for (number, HeaderCondition { name, values }) in given.iter().enumerate() {
        match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) => conditions.push((name, values.clone())),
            Err(_) => {
                let path = ["filterHeaders", &format!("[{number}]"), "name"];
                problems.add(&path, "is not a valid header name");
            }
        }
    }
    conditions
}

/// The headers to forward, without duplicates. Headers that describe the body are always included.
fn forward(kind: &str, settings: &SourceSettings, problems: &mut ProblemList) -> Vec<HeaderName> {
    let mut names = BODY_HEADERS.to_vec();
    let mut add = |name: HeaderName| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    match &settings.forward_headers {
        Some(chosen) => {
            for (number, text) in chosen.iter().enumerate() {
                match ForwardedHeaders::name(text) {
                    Ok(name) => add(name),
                    Err(why) => problems.add(&["forwardHeaders", &format!("[{number}]")], why),
                }
            }
        }
        // Of the sender's own headers, those that cannot be forwarded are left out.
        None => {
            let locations = settings.event_id_from.iter().chain(&settings.event_type_from);
            let of_locations = locations.filter_map(|text| match Place::parse(text) {
                Ok(Place::Header(name)) => Some(name),
                _ => None,
            });
            let own = types::sender_headers(kind, settings).into_iter().chain(of_locations);
            own.filter_map(|name| ForwardedHeaders::name(&name).ok()).for_each(add);
        }
    }
    names
}
