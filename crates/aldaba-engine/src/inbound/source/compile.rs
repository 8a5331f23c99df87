//! Reads all that a source was told, once: what is wrong is said when it is given, and nothing is left to say when its
//! sender comes.

use super::kind::{self, META, MICROSOFT_GRAPH};
use super::settings::{HeaderCondition, SourceProblem, SourceSecrets, SourceSettings};
use crate::inbound::forwarded::{ForwardedHeaders, OF_THE_BODY};
use aldaba_signature::inbound::{Inspector, Place, Recipe, Secret};
use http::HeaderName;
use std::time::Duration;
use zeroize::Zeroizing;

/// What is made of settings and secrets.
pub(super) struct Compiled {
    pub(super) inspector: Inspector,
    /// What Microsoft Graph shows in the place of a signature.
    pub(super) client_states: Vec<Zeroizing<String>>,
    pub(super) verify_token: Option<Zeroizing<String>>,
    /// Headers that must be there, with one of these values; empty: with any.
    pub(super) conditions: Vec<(HeaderName, Vec<String>)>,
    pub(super) forward: Vec<HeaderName>,
}

/// All that is wrong, in the order in which it was found.
#[derive(Default)]
struct Problems(Vec<SourceProblem>);

impl Problems {
    fn add(&mut self, place: &[&str], why: impl Into<String>) {
        self.0.push(SourceProblem::new(place, why));
    }
}

pub(super) fn compile(
    kind: &str,
    settings: &SourceSettings,
    secrets: &SourceSecrets,
) -> Result<Compiled, Vec<SourceProblem>> {
    let mut problems = Problems::default();
    // What Microsoft Graph shows signs nothing.
    let (client_states, keys) = match kind {
        MICROSOFT_GRAPH => (secrets.secrets.clone(), &[][..]),
        _ => (Vec::new(), &secrets.secrets[..]),
    };
    // An empty one would be shown by whoever shows none.
    if kind == MICROSOFT_GRAPH
        && (client_states.is_empty() || client_states.iter().any(|state| state.is_empty()))
    {
        let why = "this field is required: what the subscription was made with";
        problems.add(&["config", "clientState"], why);
    }
    let verify_token = verify_token(kind, secrets, &mut problems);
    let conditions = conditions(&settings.filter_headers, &mut problems);
    let forward = forward(kind, settings, &mut problems);
    let inspector = match kind::recipe(kind, settings, !keys.is_empty()) {
        Ok(recipe) => inspector(kind, recipe, keys, settings, &mut problems),
        Err(more) => {
            problems.0.extend(more);
            None
        }
    };
    match inspector {
        Some(inspector) if problems.0.is_empty() => {
            Ok(Compiled { inspector, client_states, verify_token, conditions, forward })
        }
        _ => Err(problems.0),
    }
}

fn verify_token(kind: &str, secrets: &SourceSecrets, problems: &mut Problems) -> Option<Zeroizing<String>> {
    let place = ["config", "verifyToken"];
    match (&secrets.verify_token, kind) {
        (None, META) => problems.add(&place, "this field is required: what you type in at Meta"),
        (Some(token), META) if token.is_empty() => problems.add(&place, "must not be empty"),
        (Some(_), other) if other != META => {
            problems.add(&place, "is for the type `meta` alone; leave it out");
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
    problems: &mut Problems,
) -> Option<Inspector> {
    if settings.tolerance_seconds.is_some() && !recipe.has_window() {
        problems.add(&["toleranceSeconds"], "nothing that this sender signs has a time; leave it out");
    }
    let place = ["config", kind::secret_field(kind)];
    if recipe.is_signed() && keys.is_empty() {
        problems.add(&place, "this field is required: what the sender's signatures are checked with");
        return None;
    }
    let mut secrets = Vec::with_capacity(keys.len());
    for text in keys {
        match Secret::parse_for(&recipe, text) {
            Ok(secret) => secrets.push(secret),
            Err(error) => {
                problems.add(&place, error.to_string());
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

fn conditions(given: &[HeaderCondition], problems: &mut Problems) -> Vec<(HeaderName, Vec<String>)> {
    let mut conditions = Vec::with_capacity(given.len());
    for (number, HeaderCondition { name, values }) in given.iter().enumerate() {
        match HeaderName::from_bytes(name.as_bytes()) {
            Ok(name) => conditions.push((name, values.clone())),
            Err(_) => {
                let place = ["filterHeaders", &format!("[{number}]"), "name"];
                problems.add(&place, "is no name of a header");
            }
        }
    }
    conditions
}

/// Without repeats. Those of the body go out with it, whatever else does.
fn forward(kind: &str, settings: &SourceSettings, problems: &mut Problems) -> Vec<HeaderName> {
    let mut names = OF_THE_BODY.to_vec();
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
        // Of those that the sender has, what cannot be forwarded is left out.
        None => {
            let places = settings.event_id_from.iter().chain(&settings.event_type_from);
            let of_places = places.filter_map(|text| match Place::parse(text) {
                Ok(Place::Header(name)) => Some(name),
                _ => None,
            });
            let own = kind::own_headers(kind, settings).into_iter().chain(of_places);
            own.filter_map(|name| ForwardedHeaders::name(&name).ok()).for_each(add);
        }
    }
    names
}
