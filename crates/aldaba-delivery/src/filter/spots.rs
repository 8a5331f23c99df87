//! The places of a payload that filters look at, as one tree: the payload is read once for all of them.

use super::MAX_VALUES_PER_PATH;
use super::path::{Path, Step};
use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// The places that someone looks at. `T` is who.
#[derive(Clone, Debug)]
pub(super) struct Spots<T> {
    root: Spot<T>,
    count: usize,
}

/// A place, and the places below it.
#[derive(Clone, Debug)]
struct Spot<T> {
    number: usize,
    lookers: Vec<T>,
    /// By name.
    keys: Vec<(Box<str>, Spot<T>)>,
    /// By index.
    indexes: Vec<(u32, Spot<T>)>,
    every: Option<Box<Spot<T>>>,
}

impl<T> Default for Spots<T> {
    fn default() -> Self {
        Self { root: Spot::new(0), count: 1 }
    }
}

impl<T> Spots<T> {
    pub(super) fn add(&mut self, path: &Path, looker: T) {
        let mut spot = &mut self.root;
        for step in path.steps() {
            spot = spot.below(step, &mut self.count);
        }
        spot.lookers.push(looker);
    }

    /// Calls `tell` with every value that someone looks at, up to [`MAX_VALUES_PER_PATH`] of each place. Of members
    /// with the same name the last counts, as it does for receivers. Where the payload is no JSON, nothing is
    /// told.
    pub(super) fn walk<'p>(&self, payload: &'p [u8], mut tell: impl FnMut(&[T], &'p str)) {
        let Ok(text) = std::str::from_utf8(payload) else { return };
        let mut walk = Walk { tell: &mut tell, chosen: Vec::new(), told: Vec::new(), spots: self.count };
        walk.visit(&self.root, text.trim_start());
    }
}

impl<T> Spot<T> {
    fn new(number: usize) -> Self {
        Self { number, lookers: Vec::new(), keys: Vec::new(), indexes: Vec::new(), every: None }
    }

    fn below(&mut self, step: &Step, count: &mut usize) -> &mut Self {
        let mut new = || {
            *count += 1;
            Self::new(*count - 1)
        };
        match step {
            Step::Key(name) => {
                let place = match self.keys.binary_search_by(|(key, _)| key.cmp(name)) {
                    Ok(place) => place,
                    Err(place) => {
                        self.keys.insert(place, (name.clone(), new()));
                        place
                    }
                };
                &mut self.keys[place].1
            }
            Step::Index(index) => {
                let place = match self.indexes.binary_search_by_key(index, |(index, _)| *index) {
                    Ok(place) => place,
                    Err(place) => {
                        self.indexes.insert(place, (*index, new()));
                        place
                    }
                };
                &mut self.indexes[place].1
            }
            Step::Every => self.every.get_or_insert_with(|| Box::new(new())),
        }
    }

    fn at_key(&self, name: &[u8]) -> Option<&Self> {
        let place = self.keys.binary_search_by(|(key, _)| key.as_bytes().cmp(name)).ok()?;
        self.keys.get(place).map(|(_, spot)| spot)
    }

    fn at_index(&self, index: u32) -> Option<&Self> {
        let place = self.indexes.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.indexes.get(place).map(|(_, spot)| spot)
    }

    fn looks_at_items(&self) -> bool {
        self.every.is_some() || !self.indexes.is_empty()
    }
}

struct Walk<'s, 'p, 't, T, F> {
    tell: &'t mut F,
    /// Members of the objects that are being read, the last of each name.
    chosen: Vec<(&'s Spot<T>, &'p str)>,
    /// How often a place was told of; empty as long as none can be told of twice.
    told: Vec<u32>,
    spots: usize,
}

impl<'s, 'p, T, F: FnMut(&[T], &'p str)> Walk<'s, 'p, '_, T, F> {
    fn visit(&mut self, spot: &'s Spot<T>, text: &'p str) {
        if !spot.lookers.is_empty() && self.may_tell(spot) {
            (self.tell)(&spot.lookers, text);
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        match text.as_bytes().first() {
            Some(b'{') if !spot.keys.is_empty() => {
                let outer = self.chosen.len();
                if reader.deserialize_map(Members { spot, walk: self, outer }).is_err() {
                    self.chosen.truncate(outer);
                }
                while self.chosen.len() > outer {
                    if let Some((spot, text)) = self.chosen.pop() {
                        self.visit(spot, text);
                    }
                }
            }
            Some(b'[') if spot.looks_at_items() => {
                if self.told.is_empty() {
                    self.told = vec![0; self.spots];
                }
                // What is inside of something has been read already, so this cannot fail.
                let _ = reader.deserialize_seq(Items { spot, walk: self });
            }
            _ => {}
        }
    }

    /// Whether nothing at a place, or below it, will be told of any more.
    fn is_told(&self, spot: &Spot<T>) -> bool {
        let is_leaf = spot.keys.is_empty() && !spot.looks_at_items();
        is_leaf && self.told.get(spot.number).is_some_and(|told| *told >= MAX_VALUES_PER_PATH)
    }

    fn may_tell(&mut self, spot: &Spot<T>) -> bool {
        self.told.get_mut(spot.number).is_none_or(|told| {
            *told += 1;
            *told <= MAX_VALUES_PER_PATH
        })
    }
}

struct Members<'s, 'p, 't, 'w, T, F> {
    spot: &'s Spot<T>,
    walk: &'w mut Walk<'s, 'p, 't, T, F>,
    /// Where the members of this object begin among the chosen.
    outer: usize,
}

impl<'p, T, F> Visitor<'p> for Members<'_, 'p, '_, '_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'p>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(below) = members.next_key_seed(Name(self.spot))? {
            let Some(below) = below else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            let text = members.next_value::<&'p RawValue>()?.get();
            let mut of_this = self.walk.chosen.iter_mut().skip(self.outer);
            match of_this.find(|(spot, _)| std::ptr::eq(*spot, below)) {
                Some(before) => before.1 = text,
                None => self.walk.chosen.push((below, text)),
            }
        }
        Ok(())
    }
}

/// Finds the place of a member by its name.
struct Name<'s, T>(&'s Spot<T>);

impl<'de, 's, T> DeserializeSeed<'de> for Name<'s, T> {
    type Value = Option<&'s Spot<T>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // As bytes: a name may hold half of a surrogate pair, which no string can.
        deserializer.deserialize_bytes(self)
    }
}

impl<'s, T> Visitor<'_> for Name<'s, T> {
    type Value = Option<&'s Spot<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.at_key(name))
    }
}

struct Items<'s, 'p, 't, 'w, T, F> {
    spot: &'s Spot<T>,
    walk: &'w mut Walk<'s, 'p, 't, T, F>,
}

impl<'p, T, F: FnMut(&[T], &'p str)> Visitor<'p> for Items<'_, 'p, '_, '_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'p>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let (here, every) = (self.spot.at_index(index), self.spot.every.as_deref());
            // There is nothing more to tell of: what is left of the list does not matter.
            let every = every.filter(|every| !self.walk.is_told(every));
            if every.is_none() && self.spot.indexes.last().is_none_or(|(last, _)| *last < index) {
                break;
            }
            if here.is_none() && every.is_none() {
                if items.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
                continue;
            }
            let Some(raw) = items.next_element::<&'p RawValue>()? else { break };
            for below in [here, every].into_iter().flatten() {
                self.walk.visit(below, raw.get());
            }
        }
        Ok(())
    }
}
