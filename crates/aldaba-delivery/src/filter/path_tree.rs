//! All paths of a set of filters as one tree: one pass over the payload serves them all.

use super::MAX_VALUES_PER_PATH;
use super::path::{Path, PathStep};
use serde::Deserializer as _;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// A tree of paths. `T` identifies a path.
#[derive(Clone, Debug)]
pub(super) struct PathTree<T> {
    root: PathNode<T>,
    count: usize,
}

/// A node, and the nodes below it.
#[derive(Clone, Debug)]
struct PathNode<T> {
    number: usize,
    ids: Vec<T>,
    /// By name.
    keys: Vec<(Box<str>, PathNode<T>)>,
    /// By index.
    indexes: Vec<(u32, PathNode<T>)>,
    every: Option<Box<PathNode<T>>>,
}

impl<T> Default for PathTree<T> {
    fn default() -> Self {
        Self { root: PathNode::new(0), count: 1 }
    }
}

impl<T> PathTree<T> {
    pub(super) fn add(&mut self, path: &Path, id: T) {
        let mut node = &mut self.root;
        for step in path.steps() {
            node = node.below(step, &mut self.count);
        }
        node.ids.push(id);
    }

    /// Calls `visit_value` with every value of a path, up to [`MAX_VALUES_PER_PATH`] each. Of duplicate members
    /// the last counts, as for receivers. An invalid payload has no values.
    pub(super) fn walk<'p>(&self, payload: &'p [u8], mut visit_value: impl FnMut(&[T], &'p str)) {
        let Ok(text) = std::str::from_utf8(payload) else { return };
        let mut walk = TreeWalk {
            visit_value: &mut visit_value,
            pending_members: Vec::new(),
            visited: Vec::new(),
            path_tree: self.count,
        };
        walk.visit(&self.root, text.trim_start());
    }
}

impl<T> PathNode<T> {
    fn new(number: usize) -> Self {
        Self { number, ids: Vec::new(), keys: Vec::new(), indexes: Vec::new(), every: None }
    }

    fn below(&mut self, step: &PathStep, count: &mut usize) -> &mut Self {
        let mut new = || {
            *count += 1;
            Self::new(*count - 1)
        };
        match step {
            PathStep::Key(name) => {
                let place = match self.keys.binary_search_by(|(key, _)| key.cmp(name)) {
                    Ok(place) => place,
                    Err(place) => {
                        self.keys.insert(place, (name.clone(), new()));
                        place
                    }
                };
                &mut self.keys[place].1
            }
            PathStep::Index(index) => {
                let place = match self.indexes.binary_search_by_key(index, |(index, _)| *index) {
                    Ok(place) => place,
                    Err(place) => {
                        self.indexes.insert(place, (*index, new()));
                        place
                    }
                };
                &mut self.indexes[place].1
            }
            PathStep::Every => self.every.get_or_insert_with(|| Box::new(new())),
        }
    }

    fn at_key(&self, name: &[u8]) -> Option<&Self> {
        let place = self.keys.binary_search_by(|(key, _)| key.as_bytes().cmp(name)).ok()?;
        self.keys.get(place).map(|(_, node)| node)
    }

    fn at_index(&self, index: u32) -> Option<&Self> {
        let place = self.indexes.binary_search_by_key(&index, |(index, _)| *index).ok()?;
        self.indexes.get(place).map(|(_, node)| node)
    }

    fn reads_items(&self) -> bool {
        self.every.is_some() || !self.indexes.is_empty()
    }
}

struct TreeWalk<'s, 'p, 't, T, F> {
    visit_value: &'t mut F,
    /// The members of objects being read: the last of each name.
    pending_members: Vec<(&'s PathNode<T>, &'p str)>,
    /// How often a node was visited; empty while no node can be visited twice.
    visited: Vec<u32>,
    path_tree: usize,
}

impl<'s, 'p, T, F: FnMut(&[T], &'p str)> TreeWalk<'s, 'p, '_, T, F> {
    fn visit(&mut self, node: &'s PathNode<T>, text: &'p str) {
        if !node.ids.is_empty() && self.count_visit(node) {
            (self.visit_value)(&node.ids, text);
        }
        let mut reader = serde_json::Deserializer::from_str(text);
        match text.as_bytes().first() {
            Some(b'{') if !node.keys.is_empty() => {
                let outer = self.pending_members.len();
                if reader.deserialize_map(MembersVisitor { node, walk: self, outer }).is_err() {
                    self.pending_members.truncate(outer);
                }
                while self.pending_members.len() > outer {
                    if let Some((node, text)) = self.pending_members.pop() {
                        self.visit(node, text);
                    }
                }
            }
            Some(b'[') if node.reads_items() => {
                if self.visited.is_empty() {
                    self.visited = vec![0; self.path_tree];
                }
                // The inner JSON was parsed already, so this cannot fail.
                let _ = reader.deserialize_seq(ItemsVisitor { node, walk: self });
            }
            _ => {}
        }
    }

    /// Whether a node and its children need no more visits.
    fn is_finished(&self, node: &PathNode<T>) -> bool {
        let is_leaf = node.keys.is_empty() && !node.reads_items();
        is_leaf && self.visited.get(node.number).is_some_and(|visited| *visited >= MAX_VALUES_PER_PATH)
    }

    fn count_visit(&mut self, node: &PathNode<T>) -> bool {
        self.visited.get_mut(node.number).is_none_or(|visited| {
            *visited += 1;
            *visited <= MAX_VALUES_PER_PATH
        })
    }
}

struct MembersVisitor<'s, 'p, 't, 'w, T, F> {
    node: &'s PathNode<T>,
    walk: &'w mut TreeWalk<'s, 'p, 't, T, F>,
    /// Where this object's members begin among the pending ones.
    outer: usize,
}

impl<'p, T, F> Visitor<'p> for MembersVisitor<'_, 'p, '_, '_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'p>>(self, mut members: A) -> Result<(), A::Error> {
        while let Some(below) = members.next_key_seed(NameSeed(self.node))? {
            let Some(below) = below else {
                members.next_value::<IgnoredAny>()?;
                continue;
            };
            let text = members.next_value::<&'p RawValue>()?.get();
            let mut of_this = self.walk.pending_members.iter_mut().skip(self.outer);
            match of_this.find(|(node, _)| std::ptr::eq(*node, below)) {
                Some(before) => before.1 = text,
                None => self.walk.pending_members.push((below, text)),
            }
        }
        Ok(())
    }
}

/// Finds the node of a member by its name.
struct NameSeed<'s, T>(&'s PathNode<T>);

impl<'de, 's, T> DeserializeSeed<'de> for NameSeed<'s, T> {
    type Value = Option<&'s PathNode<T>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // As bytes: a name may contain half a surrogate pair, which a string cannot hold.
        deserializer.deserialize_bytes(self)
    }
}

impl<'s, T> Visitor<'_> for NameSeed<'s, T> {
    type Value = Option<&'s PathNode<T>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_bytes<E: Error>(self, name: &[u8]) -> Result<Self::Value, E> {
        Ok(self.0.at_key(name))
    }
}

struct ItemsVisitor<'s, 'p, 't, 'w, T, F> {
    node: &'s PathNode<T>,
    walk: &'w mut TreeWalk<'s, 'p, 't, T, F>,
}

impl<'p, T, F: FnMut(&[T], &'p str)> Visitor<'p> for ItemsVisitor<'_, 'p, '_, '_, T, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'p>>(self, mut items: A) -> Result<(), A::Error> {
        for index in 0.. {
            let (here, every) = (self.node.at_index(index), self.node.every.as_deref());
            // Nothing below is needed any more: the rest of the list is skipped.
            let every = every.filter(|every| !self.walk.is_finished(every));
            if every.is_none() && self.node.indexes.last().is_none_or(|(last, _)| *last < index) {
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
