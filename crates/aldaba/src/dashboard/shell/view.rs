//! How a person wants to see pages: language and colours. It is a cookie of its own, which outlives sessions.

use crate::dashboard::answer::{see_other, with_cookie};
use crate::dashboard::fault::Fault;
use crate::dashboard::paths::{Paths, is_own};
use crate::dashboard::route::PageRoute;
use crate::dashboard::session::{cookie, set_cookie};
use crate::dashboard::texts::Tongue;
use crate::dashboard::visit::{Guest, Pairs};
use axum::response::Response;
use http::HeaderMap;
use http::header::ACCEPT_LANGUAGE;
use std::time::Duration;

const COOKIE_NAME: &str = "aldaba_view";
const COOKIE_AGE: Duration = Duration::from_secs(365 * 24 * 3600);

pub(crate) fn routes() -> Vec<PageRoute> {
    vec![PageRoute::open_post("/dashboard/view", choose)]
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Theme {
    /// As the system has it.
    #[default]
    Auto,
    Light,
    Dark,
}

impl Theme {
    pub(crate) const ALL: [Self; 3] = [Self::Auto, Self::Light, Self::Dark];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|theme| theme.name() == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) tongue: Tongue,
    pub(crate) theme: Theme,
}

impl View {
    /// What was chosen; else the browser's language.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let chosen = cookie(headers, COOKIE_NAME).and_then(|chosen| chosen.split_once('.'));
        let (language, theme) = chosen.unwrap_or_default();
        let tongue = Tongue::named(language).unwrap_or_else(|| {
            let wanted = headers.get(ACCEPT_LANGUAGE).and_then(|wanted| wanted.to_str().ok());
            preferred(wanted.unwrap_or_default())
        });
        Self { tongue, theme: Theme::named(theme).unwrap_or_default() }
    }
}

/// The first language of a list such as `es-ES,es;q=0.9,en;q=0.8` that pages have.
fn preferred(wanted: &str) -> Tongue {
    let quality = |parameters: &str| {
        let quality = parameters.trim().strip_prefix("q=")?.parse::<f32>().ok()?;
        (0.0..=1.0).contains(&quality).then_some(quality)
    };
    let ranked = wanted.split(',').filter_map(|part| {
        let (range, parameters) = part.split_once(';').unwrap_or((part, "q=1"));
        let language = range.trim().split('-').next().unwrap_or_default().to_ascii_lowercase();
        Some((Tongue::named(&language)?, quality(parameters)?))
    });
    // Of equal ones the first counts.
    let best = ranked.fold(None, |best: Option<(Tongue, f32)>, (tongue, quality)| match best {
        Some((_, before)) if before >= quality => best,
        _ => Some((tongue, quality)),
    });
    best.map_or(Tongue::English, |(tongue, _)| tongue)
}

async fn choose(guest: Guest, form: Pairs) -> Result<Response, Fault> {
    let View { tongue, theme } = guest.view;
    let tongue = form.get("language").and_then(Tongue::named).unwrap_or(tongue);
    let theme = form.get("theme").and_then(Theme::named).unwrap_or(theme);
    let then = form.get("then").filter(|path| is_own(path)).map_or_else(|| Paths.overview(), str::to_owned);
    let chosen = format!("{}.{}", tongue.code(), theme.name());
    Ok(with_cookie(see_other(&then), &set_cookie(COOKIE_NAME, &chosen, COOKIE_AGE)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use http::header::COOKIE;

    #[test]
    fn the_browsers_language_counts_until_somebody_chooses() {
        let mut headers = HeaderMap::new();
        assert_eq!(View::of(&headers).tongue, Tongue::English);
        headers.insert(ACCEPT_LANGUAGE, HeaderValue::from_static("fr, es-MX;q=0.9, en;q=0.8"));
        assert_eq!(View::of(&headers), View { tongue: Tongue::Spanish, theme: Theme::Auto });
        headers.insert(COOKIE, HeaderValue::from_static("aldaba_view=en.dark"));
        assert_eq!(View::of(&headers), View { tongue: Tongue::English, theme: Theme::Dark });
        headers.insert(COOKIE, HeaderValue::from_static("aldaba_view=xx.yy"));
        assert_eq!(View::of(&headers), View { tongue: Tongue::Spanish, theme: Theme::Auto });
    }

    #[test]
    fn the_language_with_the_highest_quality_is_preferred() {
        assert_eq!(preferred("en;q=0.5,es;q=0.6"), Tongue::Spanish);
        assert_eq!(preferred("en,es"), Tongue::English);
        assert_eq!(preferred("es;q=x,;;q=,"), Tongue::English);
    }
}
