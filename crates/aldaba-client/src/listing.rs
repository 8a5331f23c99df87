//! Lists: one page, or all items as a stream.

use crate::call::Call;
use crate::{Client, Error};
use aldaba_api::input;
use aldaba_api::words;
use futures_util::stream::{Stream, TryStreamExt, try_unfold};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::future::{Future, IntoFuture};
use std::marker::PhantomData;
use std::pin::Pin;

/// The page size of streams: the largest that the API allows.
pub(crate) const STREAM_PAGE_SIZE: u16 = 250;

/// One page of a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Page<T> {
    /// The items.
    pub data: Vec<T>,
    /// Continues with the next page.
    pub iterator: Option<String>,
    /// Goes back to the previous page.
    #[serde(default = "Option::default")]
    pub prev_iterator: Option<String>,
    /// Whether this is the last page in this direction.
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
    /// A filter without options.
    Everything {}
}

input! {
    /// A filter with an order alone.
    Ordered {
        /// Which items come first.
        order: Option<Order>,
    }
}

/// A list: `.await` returns a page, [`all`](Self::all) a stream over all items.
#[derive(Clone, Debug)]
#[must_use = "a list is read with `.await` or `.all()`"]
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
    /// Returns only what the filter selects.
    pub fn filter(self, filter: F) -> Self {
        Self { filter, ..self }
    }

    /// The size of a page, from 1 to 250. 50 by default.
    pub fn limit(self, limit: u16) -> Self {
        Self { limit: Some(limit), ..self }
    }

    /// Continues from the `iterator` or `prev_iterator` of a page.
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
    /// Reads one page.
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

    /// Reads all items from here on, page by page as the stream is polled. The stream ends with the first error.
    pub fn all(self) -> impl Stream<Item = Result<T, Error>> + Send + Unpin
    where
        T: Send,
        F: Send + Sync,
    {
        let limit = self.limit.or(Some(STREAM_PAGE_SIZE));
        let walk = PageWalk::from(self.iterator.as_deref());
        let pages = try_unfold(Some((Self { limit, ..self }, walk)), |state| async move {
            let Some((listing, mut walk)) = state else { return Ok(None) };
            let page = listing.page().await?;
            let rest = walk.after(&page)?.map(|iterator| (listing.from(iterator), walk));
            Ok(Some((futures_util::stream::iter(page.data.into_iter().map(Ok)), rest)))
        });
        Box::pin(pages.try_flatten())
    }
}

/// The position in the pages of a list. It detects a cycle, at the latest after three rounds (Brent's algorithm): it
/// remembers one page, and a later one after twice as many steps.
#[derive(Debug)]
pub(crate) struct PageWalk {
    remembered: Option<String>,
    steps: u64,
    remember_at: u64,
}

impl PageWalk {
    pub(crate) fn from(iterator: Option<&str>) -> Self {
        Self { remembered: iterator.map(str::to_owned), steps: 0, remember_at: 1 }
    }

    /// Where the next page begins; `None` after the last.
    pub(crate) fn after<T>(&mut self, page: &Page<T>) -> Result<Option<String>, Error> {
        let Some(next) = page.iterator.as_ref().filter(|_| !page.done) else { return Ok(None) };
        if self.remembered.as_ref() == Some(next) {
            return Err(Error::unreadable(200, "its pages form a cycle"));
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
    fn pages_are_read_up_to_the_last() {
        let mut walk = PageWalk::from(Some("a"));
        for next in (0..10_000).map(|n| n.to_string()) {
            assert_eq!(walk.after(&page(Some(&next), false)), Ok(Some(next)));
        }
        assert_eq!(walk.after(&page(Some("b"), true)), Ok(None));
        assert_eq!(walk.after(&page(None, false)), Ok(None));
    }

    #[test]
    fn a_cycle_of_pages_ends_with_an_error() {
        for (before, round) in [(0, 1), (0, 2), (1, 2), (5, 7), (100, 3), (3, 100)] {
            let mut walk = PageWalk::from(None);
            let mut pages = (0..before).chain((before..before + round).cycle()).map(|n| n.to_string());
            let ended = (0..3 * (before + round) + 1)
                .position(|_| walk.after(&page(pages.next().as_deref(), false)).is_err());
            assert!(ended.is_some(), "{before} pages before a circle of {round}");
        }
    }
}
