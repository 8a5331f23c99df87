//! Refuses forms of other sites. Browsers say from where a request comes: in `Sec-Fetch-Site`, and older ones in `Origin`.

use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrossSite {
    Same,
    Refused,
}

/// Whether a POST comes from a page of this server.
pub(crate) fn cross_site(headers: &HeaderMap) -> CrossSite {
    let text = |name: &str| headers.get(name).map(HeaderValue::to_str);
    let is_same = match (text("sec-fetch-site"), text(ORIGIN.as_str())) {
        (Some(site), _) => site.is_ok_and(|site| site == "same-origin"),
        (None, Some(Ok(origin))) => {
            let host = headers.get(HOST).and_then(|host| host.to_str().ok());
            let from = origin.split_once("://").map(|(_, host)| host);
            from.is_some() && from == host
        }
        // No browser leaves out both.
        (None, None | Some(Err(_))) => false,
    };
    if is_same { CrossSite::Same } else { CrossSite::Refused }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn of(pairs: &[(&'static str, &'static str)]) -> CrossSite {
        let pairs = pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        cross_site(&pairs.collect())
    }

    #[test]
    fn only_this_servers_pages_may_send_forms() {
        let host = ("host", "hooks.example:8071");
        assert_eq!(of(&[host, ("sec-fetch-site", "same-origin")]), CrossSite::Same);
        for site in ["same-site", "cross-site", "none"] {
            let own = ("origin", "http://hooks.example:8071");
            assert_eq!(of(&[host, ("sec-fetch-site", site), own]), CrossSite::Refused, "{site}");
        }
        assert_eq!(of(&[host, ("origin", "https://hooks.example:8071")]), CrossSite::Same);
        for origin in ["null", "http://hooks.example", "http://evil.example:8071", "hooks.example:8071"] {
            assert_eq!(of(&[host, ("origin", origin)]), CrossSite::Refused, "{origin}");
        }
        assert_eq!(of(&[host]), CrossSite::Refused);
        assert_eq!(of(&[("origin", "http://hooks.example:8071")]), CrossSite::Refused);
    }
}
