//! Lists in the order of ids, read in pages. A list with a filter that finds little ends early, at a place from which the next
//! read goes on.

use crate::operations::{Result, Slice};
use crate::{ListPage, ListRange, Order};
use aldaba_delivery::{Id, IdKind};

/// Rows that one statement reads.
const PAGE_ROWS: std::ops::RangeInclusive<usize> = 32..=256;
/// Rows that are looked at in vain between two looks at the clock.
const ROWS_BETWEEN_LOOKS: usize = 64;

/// The bounds of a page: only ids between them are on it.
pub(crate) fn bounds<K: IdKind>(after: Option<Id<K>>, order: Order) -> (Id<K>, Id<K>) {
    let (lowest, highest) = (Id::from_bytes([0; 20]), Id::MAX);
    match (after, order) {
        (None, _) => (lowest, highest),
        (Some(after), Order::Ascending) => (after, highest),
        (Some(after), Order::Descending) => (lowest, after),
    }
}

/// A part of a list that is to be read.
pub(crate) struct Range<K> {
    /// Only ids between these two.
    pub low: Id<K>,
    pub high: Id<K>,
    pub order: Order,
    /// How many items to find.
    pub limit: usize,
    /// How many rows to look at.
    pub most: usize,
}

impl<K: IdKind> From<&ListRange<Id<K>>> for Range<K> {
    fn from(part: &ListRange<Id<K>>) -> Self {
        let (low, high) = part.bounds();
        Self { low, high, order: part.order, limit: part.page.limit, most: part.walk }
    }
}

/// What it took to look at an item.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// Rows beside the item's own.
    pub rows: usize,
    /// The page is full with this item.
    pub ends_page: bool,
}

/// Reads pages of a list (`page`: a bound below, a bound above, how many rows) and looks at their items, until enough are
/// found or looked at, or the slice is over.
pub(crate) fn walk<K: IdKind, I, T>(
    mut range: Range<K>,
    slice: &Slice<'_>,
    mut page: impl FnMut(Id<K>, Id<K>, usize) -> Result<Vec<I>>,
    id: impl Fn(&I) -> Id<K>,
    mut look: impl FnMut(I, &mut Looked) -> Result<Option<T>>,
) -> Result<ListPage<T, Id<K>>> {
    let mut found = Vec::new();
    let (mut looked_at, mut at_last_look, mut stopped) = (0, 0, None);
    'pages: while found.len() < range.limit {
        let rows = (range.limit - found.len()).clamp(*PAGE_ROWS.start(), *PAGE_ROWS.end());
        let items = page(range.low, range.high, rows)?;
        let is_last = items.len() < rows;
        for item in items {
            // The walk always comes forward, or a slow machine would never come to an end.
            if stopped.is_some() && looked_at >= range.most.max(1) {
                break 'pages;
            }
            let in_vain = looked_at > found.len();
            if in_vain && looked_at >= at_last_look + ROWS_BETWEEN_LOOKS {
                at_last_look = looked_at;
                if slice.is_over() {
                    break 'pages;
                }
            }
            let (place, mut looked) = (id(&item), Looked::default());
            match range.order {
                Order::Ascending => range.low = place,
                Order::Descending => range.high = place,
            }
            stopped = Some(place);
            found.extend(look(item, &mut looked)?);
            looked_at += 1 + looked.rows;
            if looked.ends_page {
                break 'pages;
            }
            if found.len() >= range.limit {
                break;
            }
        }
        if is_last {
            stopped = None;
            break;
        }
    }
    // A full page says nothing about where it ended.
    let stopped = stopped.filter(|_| found.len() < range.limit);
    Ok(ListPage { items: found, stopped })
}
