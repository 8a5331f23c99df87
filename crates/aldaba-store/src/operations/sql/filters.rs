//! Filters that are in use, so that none is read from its text twice: after every change of an endpoint all those of its
//! application are read again.

use aldaba_delivery::Filter;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, LazyLock, Weak};

static KNOWN: LazyLock<Mutex<FilterCache>> = LazyLock::new(Mutex::default);

/// Those that nobody uses are let go of when it has grown so much.
const ROOM: usize = 1024;

#[derive(Default)]
struct FilterCache {
    /// By the hash of the text.
    filters: HashMap<u64, Weak<Filter>>,
    /// How many there were when those that nobody uses were let go of.
    used: usize,
}

/// `None`: the text is no filter.
pub(crate) fn filter(text: &str) -> Option<Arc<Filter>> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let hash = hasher.finish();
    let known = KNOWN.lock().filters.get(&hash).and_then(Weak::upgrade);
    if let Some(filter) = known.filter(|filter| filter.as_str() == text) {
        return Some(filter);
    }
    let filter = Arc::new(Filter::parse(text).ok()?);
    let FilterCache { filters, used } = &mut *KNOWN.lock();
    if filters.len() >= 2 * *used + ROOM {
        filters.retain(|_, filter| filter.strong_count() > 0);
        *used = filters.len();
    }
    filters.insert(hash, Arc::downgrade(&filter));
    Some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_read_once_while_it_is_used() {
        let text = r#"{"tag":"read once"}"#;
        let (one, two) = (filter(text).unwrap(), filter(text).unwrap());
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(one.as_str(), text);
        assert!(filter("{}").is_none());
    }

    #[test]
    fn what_nobody_uses_is_let_go_of() {
        for number in 0..3 * ROOM {
            filter(&format!(r#"{{"tag":"nobody uses {number}"}}"#)).unwrap();
        }
        let known = KNOWN.lock();
        assert!(known.filters.len() <= 2 * known.used + ROOM, "{}", known.filters.len());
        assert!(known.used < ROOM);
    }
}
