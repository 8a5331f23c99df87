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
            call: Call::get(parts),
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
        let pages = try_unfold(Some(Self { limit, ..self }), |listing| async move {
            let Some(listing) = listing else { return Ok(None) };
            let page = listing.page().await?;
            let next = following(&page, listing.iterator.as_deref())?;
            let rest = next.map(|iterator| listing.from(iterator));
            Ok(Some((futures_util::stream::iter(page.data.into_iter().map(Ok)), rest)))
        });
        Box::pin(pages.try_flatten())
    }
}

/// Where the next page begins, if there is one.
pub(crate) fn following<T>(page: &Page<T>, here: Option<&str>) -> Result<Option<String>, Error> {
    match &page.iterator {
        Some(next) if !page.done && here == Some(next) => {
            // Asking on would never end.
            Err(Error::Answer { status: 200, detail: "a page that leads to itself".into() })
        }
        Some(next) if !page.done => Ok(Some(next.clone())),
        _ => Ok(None),
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

    #[test]
    fn a_walk_over_pages_ends() {
        let page = |iterator: Option<&str>, done| Page::<u8> {
            data: Vec::new(),
            iterator: iterator.map(str::to_owned),
            prev_iterator: None,
            done,
        };
        assert_eq!(following(&page(Some("b"), false), Some("a")), Ok(Some("b".to_owned())));
        assert_eq!(following(&page(Some("b"), true), Some("a")), Ok(None));
        assert_eq!(following(&page(None, false), None), Ok(None));
        assert!(matches!(following(&page(Some("a"), false), Some("a")), Err(Error::Answer { .. })));
    }
}
