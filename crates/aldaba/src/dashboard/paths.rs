//! Where things are: the only place that puts URLs of pages together, so that the same templates can serve one application elsewhere.

use super::ROOT;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use std::fmt::Display;

/// What may stand in a part of a path as it is.
const PART: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// The URLs of pages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paths;

impl Paths {
    pub(crate) fn overview(self) -> String {
        ROOT.to_owned()
    }

    pub(crate) fn login(self) -> String {
        format!("{ROOT}/login")
    }

    pub(crate) fn logout(self) -> String {
        format!("{ROOT}/logout")
    }

    pub(crate) fn view(self) -> String {
        format!("{ROOT}/view")
    }

    pub(crate) fn search(self) -> String {
        format!("{ROOT}/search")
    }

    pub(crate) fn live(self) -> String {
        format!("{ROOT}/live")
    }

    pub(crate) fn apps(self) -> String {
        format!("{ROOT}/apps")
    }

    pub(crate) fn app(self, app: impl Display) -> String {
        format!("{ROOT}/apps/{}", part(app))
    }

    pub(crate) fn endpoint(self, app: impl Display, endpoint: impl Display) -> String {
        format!("{}/endpoints/{}", self.app(app), part(endpoint))
    }

    pub(crate) fn message(self, app: impl Display, message: impl Display) -> String {
        format!("{}/messages/{}", self.app(app), part(message))
    }

    pub(crate) fn dead_letter(self) -> String {
        format!("{ROOT}/dead-letter")
    }

    /// The dead letter of one endpoint.
    pub(crate) fn dead_letter_at(self, app: impl Display, endpoint: impl Display) -> String {
        with_query(&self.dead_letter(), &[("app", &app.to_string()), ("endpoint", &endpoint.to_string())])
    }
}

fn part(text: impl Display) -> String {
    utf8_percent_encode(&text.to_string(), PART).to_string()
}

/// A path with a query string. Empty values are left out.
pub(crate) fn with_query(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match query.finish() {
        query if query.is_empty() => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

/// Whether a path that came with a request is one of ours, so that nobody is led elsewhere.
pub(crate) fn is_own(path: &str) -> bool {
    let rest = path.strip_prefix(ROOT).unwrap_or("x");
    (rest.is_empty() || rest.starts_with(['/', '?']))
        && !path.contains("//")
        && path.bytes().all(|byte| (0x21..0x7f).contains(&byte) && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_a_path_is_one_part_of_it() {
        assert_eq!(Paths.app("a/b?c d"), "/dashboard/apps/a%2Fb%3Fc%20d");
        assert_eq!(with_query("/a", &[("x", "1&2"), ("y", "")]), "/a?x=1%262");
        assert_eq!(with_query("/a", &[("x", "")]), "/a");
    }

    #[test]
    fn only_paths_of_the_dashboard_are_followed() {
        for own in ["/dashboard", "/dashboard/apps?limit=1", "/dashboard?x=1"] {
            assert!(is_own(own), "{own}");
        }
        for other in [
            "",
            "/",
            "//evil.example",
            "/dashboardx",
            "/dashboard/\\evil",
            "https://evil.example",
            "/dashboard//x",
        ] {
            assert!(!is_own(other), "{other}");
        }
    }
}
