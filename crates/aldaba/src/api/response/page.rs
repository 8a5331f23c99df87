//! Pages of lists, forwards or backwards from an item.

use super::error::Problem;
use crate::api::request::json;
use crate::api::request::query::Query;
use crate::api::{Api, Error};
use crate::questions::cut;
use aldaba_store::{Order, Page};
use axum::extract::FromRequestParts;
use axum::response::Response;
use http::StatusCode;
use http::request::Parts;
use serde::Serialize;
use std::fmt::Display;
use std::str::FromStr;

pub(crate) const DEFAULT_LIMIT: usize = 50;
pub(crate) const MAX_LIMIT: usize = 250;

/// The page that a query asks for. `Id` identifies the items.
pub(crate) struct PageQuery<Id> {
    pub(crate) limit: usize,
    /// Starts beside this item.
    pub(crate) beside: Option<Id>,
    /// Towards the beginning of the list.
    pub(crate) backwards: bool,
    pub(crate) order: Option<Order>,
    pub(crate) query: Query,
}

impl<Id: FromStr<Err: Display>> FromRequestParts<Api> for PageQuery<Id> {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, _: &Api) -> Result<Self, Error> {
        let query = Query::of(parts);
        let limit = limit(&query);
        let (beside, backwards) = iterator(query.text("iterator"), "query")?;
        let order = query.text("order").map(|order| match order {
            "ascending" => Order::Ascending,
            _ => Order::Descending,
        });
        Ok(Self { limit, beside, backwards, order, query })
    }
}

/// An item to start beside, and whether towards the beginning of the list. `place`: where the iterator was given.
pub(crate) fn iterator<Id: FromStr<Err: Display>>(
    text: Option<&str>,
    place: &str,
) -> Result<(Option<Id>, bool), Error> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok((None, false)) };
    let (id, backwards) = text.strip_prefix('-').map_or((text, false), |id| (id, true));
    let wrong = |error: Id::Err| Problem::value(&[place, "iterator"], error.to_string());
    Ok((Some(id.parse().map_err(wrong)?), backwards))
}

pub(crate) fn limit(query: &Query) -> usize {
    let limit = query.number("limit").and_then(|limit| usize::try_from(limit).ok());
    limit.unwrap_or(DEFAULT_LIMIT)
}

impl<Id: Clone + Display> PageQuery<Id> {
    /// The page to read: one item more than wanted tells whether there are others.
    pub(crate) fn ask(&self, order: Order) -> (Page<Id>, Order) {
        let order = match (self.backwards, order) {
            (false, order) => order,
            (true, Order::Ascending) => Order::Descending,
            (true, Order::Descending) => Order::Ascending,
        };
        (Page { after: self.beside.clone(), limit: self.limit + 1 }, order)
    }

    /// The page of a list in memory, which is in ascending order.
    pub(crate) fn cut<T>(&self, items: Vec<T>, order: Order, id: impl Fn(&T) -> Id) -> Vec<T>
    where
        Id: Ord,
    {
        let (page, order) = self.ask(order);
        cut(items, &page, order, id)
    }

    /// Makes the page of the items that were read. `more`: others follow although fewer were read.
    pub(crate) fn list<T>(&self, mut items: Vec<T>, more: bool, id: impl Fn(&T) -> Id) -> Listed<T> {
        let done = items.len() <= self.limit && !more;
        items.truncate(self.limit);
        if self.backwards {
            items.reverse();
        }
        let iterator = items.last().map(|item| id(item).to_string());
        let prev_iterator = items.first().map(|item| format!("-{}", id(item)));
        Listed { items, iterator, prev_iterator, done }
    }

    /// The same for a search that may have stopped early: the next page continues from there.
    pub(crate) fn list_walked<T>(
        &self,
        items: Vec<T>,
        stopped: Option<Id>,
        id: impl Fn(&T) -> Id,
    ) -> Listed<T> {
        let mut listed = self.list(items, stopped.is_some(), id);
        if let Some(stopped) = stopped {
            match self.backwards {
                false => listed.iterator = Some(stopped.to_string()),
                true => listed.prev_iterator = Some(format!("-{stopped}")),
            }
        }
        listed
    }
}

/// A page before its items are rendered.
pub(crate) struct Listed<T> {
    pub(crate) items: Vec<T>,
    iterator: Option<String>,
    prev_iterator: Option<String>,
    done: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct List<'a, R> {
    data: Vec<R>,
    iterator: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prev_iterator: &'a Option<String>,
    done: bool,
}

impl<T> Listed<T> {
    pub(crate) fn nothing() -> Self {
        Self { items: Vec::new(), iterator: None, prev_iterator: None, done: true }
    }

    /// All there are, on one page.
    pub(crate) fn all(items: Vec<T>) -> Self {
        Self { items, ..Self::nothing() }
    }

    /// A page from which one can go on, but not back.
    pub(crate) fn forward(items: Vec<T>, iterator: Option<String>, done: bool) -> Self {
        Self { items, iterator, prev_iterator: None, done }
    }

    pub(crate) fn render<'a, R: Serialize>(&'a self, item: impl FnMut(&'a T) -> R) -> Response {
        let Self { items, iterator, prev_iterator, done } = self;
        let data = items.iter().map(item).collect();
        json::answer(StatusCode::OK, &List { data, iterator, prev_iterator, done: *done })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(backwards: bool) -> PageQuery<u32> {
        PageQuery { limit: 2, beside: Some(50), backwards, order: None, query: Query::default() }
    }

    #[test]
    fn a_walk_that_was_given_up_goes_on_from_there() {
        let listed = asked(false).list_walked(vec![60], Some(99), |item| *item);
        assert_eq!((listed.iterator.as_deref(), listed.prev_iterator.as_deref()), (Some("99"), Some("-60")));
        assert!(!listed.done);
        let listed = asked(true).list_walked(vec![40], Some(9), |item| *item);
        assert_eq!((listed.iterator.as_deref(), listed.prev_iterator.as_deref()), (Some("40"), Some("-9")));
        assert!(!listed.done);
        let nothing = asked(false).list_walked(Vec::new(), Some(99), |item: &u32| *item);
        assert_eq!((nothing.iterator.as_deref(), nothing.done), (Some("99"), false));
        let end = asked(false).list_walked(vec![60], None, |item| *item);
        assert_eq!((end.iterator.as_deref(), end.done), (Some("60"), true));
    }
}
