//! Lists: a page, or everything as a stream.

use crate::call::Call;
use crate::shape::input;
use crate::text::words;
use crate::{Client, Error};
use futures_util::stream::{Stream, TryStreamExt, try_unfold};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

/// Items that a stream over everything asks for at once: as many as a page may have.
pub(crate) const ITEMS_OF_A_STREAM: u16 = 250;

/// A part of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Page<T> {
    /// The items.
    pub data: Vec<T>,
    /// Leads to the page that follows.
    pub iterator: Option<String>,
    /// Leads to the page before.
    #[serde(default = "Option::default")]
    pub prev_iterator: Option<String>,
    /// No more follow in this direction.
    pub done: bool,
}

words! {
    /// Which items come first.
    Order {
        /// The oldest.
        Ascending = "ascending",
        /// The newest.
        Descending = "descending",
    }
}

input! {
    /// Nothing to choose by.
    Everything {}
}

input! {
    /// Everything, in an order.
    Ordered {
        /// Which items come first.
        order: Option<Order>,
    }
}

/// A list that can be asked for: `.await` gives a page, [`all`](Self::all) a stream over all of them.
#[derive(Clone, Debug)]
#[must_use = "a list is asked for by `.await` or `.all()`"]
pub struct Listing<T, F = Everything> {
    client: Client,
    call: Call,
    filter: F,
    limit: Option<u16>,
    iterator: Option<String>,
    items: PhantomData<fn() -> T>,
}

impl<T, F: Default> Listing<T, F> {
    pub(crate) fn new(client: &Client, parts: &[&str]) -> Self {
        Self {
            client: client.clone(),
            call: Call::get(parts).of_many(),
            filter: F::default(),
            limit: None,
            iterator: None,
            items: PhantomData,
        }
    }
}

impl<T, F> Listing<T, F> {
    /// Only what this asks for.
    pub fn filter(self, filter: F) -> Self {
        Self { filter, ..self }
    }

    /// Items of a page at most, from 1 to 250. 50 if not given.
    pub fn limit(self, limit: u16) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Goes on from the `iterator` or `prev_iterator` of a page.
    pub fn from(self, iterator: impl Into<String>) -> Self {
        Self { iterator: Some(iterator.into()), ..self }
    }
}

impl<T> Listing<T, Ordered> {
    /// Which items come first.
    pub fn order(self, order: Order) -> Self {
        Self { filter: Ordered { order: Some(order) }, ..self }
    }
}

impl<T: DeserializeOwned, F: Serialize> Listing<T, F> {
    /// One page.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn page(&self) -> Result<Page<T>, Error> {
        let mut call = self.call.clone().query_of(&self.filter);
        if let Some(limit) = self.limit {
            call = call.query("limit", &limit);
        }
        if let Some(iterator) = &self.iterator {
            call = call.query("iterator", iterator);
        }
        call.answer(&self.client).await
    }

    /// All items from here on, page by page as they are taken. It ends with the first error.
    pub fn all(self) -> impl Stream<Item = Result<T, Error>> + Send + Unpin
    where
        T: Send,
        F: Send + Sync,
    {
        let limit = self.limit.or(Some(ITEMS_OF_A_STREAM));
        let walk = Walk::from(self.iterator.as_deref());
        let pages = try_unfold(Some((Self { limit, ..self }, walk)), |state| async move {
            let Some((listing, mut walk)) = state else { return Ok(None) };
            let page = listing.page().await?;
            let rest = walk.after(&page)?.map(|iterator| (listing.from(iterator), walk));
            Ok(Some((futures_util::stream::iter(page.data.into_iter().map(Ok)), rest)))
        });
        Box::pin(pages.try_flatten())
    }
}

/// The way through the pages of a list. One that leads round in a circle is noticed, at the latest when it has been
/// gone round three times: one page is remembered, and after twice as many steps as before a later one.
#[derive(Debug)]
pub(crate) struct Walk {
    remembered: Option<String>,
    steps: u64,
    remember_at: u64,
}

impl Walk {
    pub(crate) fn from(iterator: Option<&str>) -> Self {
        Self { remembered: iterator.map(str::to_owned), steps: 0, remember_at: 1 }
    }

    /// Where the next page begins, if there is one.
    pub(crate) fn after<T>(&mut self, page: &Page<T>) -> Result<Option<String>, Error> {
        let Some(next) = page.iterator.as_ref().filter(|_| !page.done) else { return Ok(None) };
        if self.remembered.as_ref() == Some(next) {
            return Err(Error::unreadable(200, "its pages lead round in a circle"));
        }
        self.steps += 1;
        if self.steps == self.remember_at {
            self.remembered = Some(next.clone());
            self.remember_at = self.remember_at.saturating_mul(2);
        }
        Ok(Some(next.clone()))
    }
}

impl<T, F> IntoFuture for Listing<T, F>
where
    T: DeserializeOwned + Send + 'static,
    F: Serialize + Send + Sync + 'static,
{
    type Output = Result<Page<T>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.page().await })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(iterator: Option<&str>, done: bool) -> Page<u8> {
        Page { data: Vec::new(), iterator: iterator.map(str::to_owned), prev_iterator: None, done }
    }

    #[test]
    fn a_walk_over_pages_goes_on_to_the_last() {
        let mut walk = Walk::from(Some("a"));
        for next in (0..10_000).map(|n| n.to_string()) {
            assert_eq!(walk.after(&page(Some(&next), false)), Ok(Some(next)));
        }
        assert_eq!(walk.after(&page(Some("b"), true)), Ok(None));
        assert_eq!(walk.after(&page(None, false)), Ok(None));
    }

    #[test]
    fn a_walk_in_a_circle_ends_with_an_error() {
        for (before, round) in [(0, 1), (0, 2), (1, 2), (5, 7), (100, 3), (3, 100)] {
            let mut walk = Walk::from(None);
            let mut pages = (0..before).chain((before..before + round).cycle()).map(|n| n.to_string());
            let ended = (0..3 * (before + round) + 1)
                .position(|_| walk.after(&page(pages.next().as_deref(), false)).is_err());
            assert!(ended.is_some(), "{before} pages before a circle of {round}");
        }
    }
}
