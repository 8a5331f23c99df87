//! Suggests routes for a request to a route that does not exist.

use super::route::Route;
use crate::api::response::error::Error;
use crate::api::source::inbound_request;
use aldaba_delivery::nearest::{distance, letters};
use http::Method;
use std::collections::HashMap;

/// Routes in one suggestion.
const MAX_NAMED: usize = 3;
/// Longer paths and segments are not compared: anybody may send them.
const MAX_SEGMENTS: usize = 12;
const MAX_SEGMENT_BYTES: usize = 40;
/// Bytes of the path in an error.
const MAX_SHOWN_BYTES: usize = 200;

/// The costs of differences. A route is suggested up to `MAX_DISTANCE`.
const OTHER_METHOD_COST: u32 = 1;
const PARAMETER_COST: u32 = 1;
const ABBREVIATION_COST: u32 = 2;
const PREFIX_COST: u32 = 1;
const SEGMENT_COST: u32 = 5;
const MAX_DISTANCE: u32 = 9;

/// The abbreviations in paths, and their full words.
const LONG_FORMS: [(&str, &str); 3] = [("app", "application"), ("msg", "message"), ("stats", "statistics")];

/// Every route, as callers write its path.
#[derive(Debug)]
pub(crate) struct KnownRoutes(Vec<(Method, String)>);

impl KnownRoutes {
    pub(crate) fn of(routes: &[Route]) -> Self {
        let api = routes.iter().map(|route| (route.method.clone(), format!("/api/v1{}", route.path)));
        Self(api.chain([(Method::POST, inbound_request::PATH.to_owned())]).collect())
    }

    /// The methods of a route, for the header `Allow`. Paths outside of the API are pages.
    pub(crate) fn methods_of(&self, path: &str) -> String {
        let mut methods: Vec<_> =
            self.0.iter().filter(|(_, known)| known == path).map(|(method, _)| method.as_str()).collect();
        if methods.is_empty() {
            methods.push("GET");
        }
        if methods.contains(&"GET") {
            methods.push("HEAD");
        }
        methods.sort_unstable();
        methods.join(", ")
    }

    /// The error for a missing route.
    pub(crate) fn missing(&self, method: &Method, path: &str) -> Error {
        let near = self.near(method, path);
        let shown = &path[..path.floor_char_boundary(MAX_SHOWN_BYTES)];
        let hint = match &near[..] {
            [] => "the API is under /api/v1, and /docs lists its routes".to_owned(),
            near => format!("near are {}; /docs lists all", near.join(", ")),
        };
        Error::not_found(format!("There is no route {method} {shown}; {hint}"))
    }

    fn near(&self, method: &Method, path: &str) -> Vec<String> {
        let given: Vec<_> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        if given.is_empty() || given.len() > MAX_SEGMENTS {
            return Vec::new();
        }
        let mut likeness = Likeness::default();
        let mut near: Vec<_> = self
            .0
            .iter()
            .filter_map(|(other, known)| {
                let segments: Vec<_> = known.split('/').skip(1).collect();
                let apart =
                    likeness.between(&given, &segments)? + u32::from(other != method) * OTHER_METHOD_COST;
                (apart <= MAX_DISTANCE).then(|| (apart, format!("{other} {known}")))
            })
            .collect();
        // At the same distance, in the order of the declarations.
        near.sort_by_key(|(apart, _)| *apart);
        near.into_iter().take(MAX_NAMED).map(|(_, route)| route).collect()
    }
}

/// The distances of segments. Many routes share them, so each pair is compared once.
#[derive(Default)]
struct Likeness<'a>(HashMap<(&'a str, &'a str), Option<u32>>);

impl<'a> Likeness<'a> {
    /// The distance of two paths, by segments. `None`: they share no name.
    fn between(&mut self, given: &[&'a str], known: &[&'a str]) -> Option<u32> {
        let mut names = known.iter().filter(|name| !is_parameter(name) && !is_prefix(name));
        names.find(|name| given.iter().any(|segment| self.segment(segment, name).is_some()))?;
        let mut last = vec![0];
        for name in known {
            last.push(last[last.len() - 1] + left_out(name));
        }
        for segment in given {
            let mut row = vec![last[0] + SEGMENT_COST];
            for (place, name) in known.iter().enumerate() {
                let other = (last[place + 1] + SEGMENT_COST).min(row[place] + left_out(name));
                let same = self.segment(segment, name).map(|apart| last[place] + apart);
                row.push(same.map_or(other, |same| same.min(other)));
            }
            last = row;
        }
        last.pop()
    }

    fn segment(&mut self, given: &'a str, known: &'a str) -> Option<u32> {
        if is_parameter(known) {
            return Some(PARAMETER_COST);
        }
        if is_prefix(known) || is_prefix(given) {
            return (given == known).then_some(0);
        }
        *self.0.entry((given, known)).or_insert_with(|| compare(given, known))
    }
}

fn is_parameter(name: &str) -> bool {
    name.starts_with('{')
}

fn is_prefix(name: &str) -> bool {
    matches!(name, "api" | "v1")
}

/// Many callers leave out the common prefix.
fn left_out(name: &str) -> u32 {
    if is_prefix(name) { PREFIX_COST } else { SEGMENT_COST }
}

fn compare(given: &str, known: &str) -> Option<u32> {
    if given == known {
        return Some(0);
    }
    if given.len() > MAX_SEGMENT_BYTES {
        return None;
    }
    let given = letters(given);
    let apart = |known: &str, more: u32| {
        let apart = distance(&given, &letters(known));
        (apart <= given.len() / 3).then(|| u32::try_from(apart).unwrap_or(u32::MAX).saturating_add(more))
    };
    let in_full = LONG_FORMS.iter().find(|(short, _)| *short == known);
    apart(known, 0).or_else(|| in_full.and_then(|(_, long)| apart(long, ABBREVIATION_COST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(method: &Method, path: &str) -> Vec<String> {
        KnownRoutes::of(&crate::api::routes()).near(method, path)
    }

    #[test]
    fn a_slip_an_abbreviation_and_a_missing_prefix_find_the_route_that_was_meant() {
        for (method, path, meant) in [
            (Method::GET, "/api/v1/applications", "GET /api/v1/app"),
            (Method::GET, "/api/v1/aplications", "GET /api/v1/app"),
            (Method::POST, "/api/v1/application", "POST /api/v1/app"),
            (Method::GET, "/v1/app", "GET /api/v1/app"),
            (Method::POST, "/app/app_1/message", "POST /api/v1/app/{app_id}/msg"),
            (Method::GET, "/api/v1/app/a/endpoints", "GET /api/v1/app/{app_id}/endpoint"),
            (Method::GET, "/api/v1/event-types", "GET /api/v1/event-type"),
            (Method::GET, "/api/v1/event_type/invoice.paid", "GET /api/v1/event-type/{event_type_name}"),
            (Method::GET, "/api/v1/helth", "GET /api/v1/health"),
            (Method::GET, "/api/v1/audits", "GET /api/v1/audit"),
        ] {
            assert_eq!(near(&method, path).first().map(String::as_str), Some(meant), "{method} {path}");
        }
    }

    #[test]
    fn no_more_than_three_are_named_and_none_that_has_nothing_in_common() {
        assert_eq!(near(&Method::GET, "/api/v1/applications").len(), MAX_NAMED);
        for path in [
            "/",
            "/favicon.ico",
            "/wp-admin/setup.php",
            "/api/v1",
            "/api/v2/xyz",
            &"/a".repeat(100),
            &"x".repeat(5000),
        ] {
            assert_eq!(near(&Method::GET, path), <[String; 0]>::default(), "{path}");
        }
    }

    #[test]
    fn the_methods_of_a_route_are_those_that_are_declared() {
        let known = KnownRoutes::of(&crate::api::routes());
        assert_eq!(known.methods_of("/api/v1/app"), "GET, HEAD, POST");
        assert_eq!(known.methods_of("/api/v1/app/{app_id}"), "DELETE, GET, HEAD, PATCH, PUT");
        assert_eq!(known.methods_of("/docs"), "GET, HEAD", "a page");
    }
}
