//! The links below a list: back to its beginning, and on to what follows.

use crate::dashboard::paths::with_query;
use crate::dashboard::texts::ShellTexts;
use crate::dashboard::visit::{Pairs, Visit};
use aldaba_engine::escaped;

/// The name of the part of the URL that says where a list goes on.
pub(crate) const AFTER: &str = "after";

#[derive(Default)]
pub(crate) struct Pager {
    /// `None`: this is the beginning.
    first: Option<String>,
    /// `None`: nothing follows.
    next: Option<String>,
}

impl Pager {
    /// `next`: after which item the list goes on.
    pub(crate) fn of(visit: &Visit, next: Option<String>) -> Self {
        let at = |after: Option<&str>| {
            let kept = visit.query.iter().filter(|(name, _)| ![AFTER, "done", "count"].contains(name));
            let pairs: Vec<_> = kept.chain(after.map(|after| (AFTER, after))).collect();
            with_query(&visit.path, &pairs)
        };
        let is_first = visit.query.get(AFTER).is_none();
        Self { first: (!is_first).then(|| at(None)), next: next.map(|next| at(Some(&next))) }
    }

    /// Where the list goes on after `limit` of them, if there is one more.
    pub(crate) fn cut<T>(items: &mut Vec<T>, limit: usize, after: impl Fn(&T) -> String) -> Option<String> {
        if items.len() <= limit {
            return None;
        }
        items.truncate(limit);
        items.last().map(after)
    }

    pub(crate) fn markup(&self, t: &dyn ShellTexts) -> String {
        let link = |path: &Option<String>, words: String| {
            let path = path.as_ref()?;
            Some(format!("<a class=\"button\" href=\"{}\">{}</a>", escaped(path), escaped(&words)))
        };
        let links: Vec<_> =
            [link(&self.first, t.first()), link(&self.next, t.next())].into_iter().flatten().collect();
        match links.is_empty() {
            true => String::new(),
            false => format!("<nav class=\"pager\">{}</nav>", links.join(" ")),
        }
    }
}

/// What a list begins after, if the URL says so in a form that can be read.
pub(crate) fn after<T: std::str::FromStr>(
    query: &Pairs,
) -> Result<Option<T>, crate::dashboard::fault::Fault> {
    let Some(given) = query.get(AFTER) else { return Ok(None) };
    let unreadable = |_| crate::dashboard::fault::Fault::Unreadable { name: AFTER, given: given.to_owned() };
    given.parse().map(Some).map_err(unreadable)
}
