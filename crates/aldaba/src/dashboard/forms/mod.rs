//! Forms that forgive: what was entered comes back with each fault at its field, and nobody's change is undone unseen.
//!
//! A form is a struct with one [`Entry`] for each field, in the page's own file. It is made of what is stored, or of what was entered;
//! [`Entered`] reads and checks, and notes faults at the fields.

mod entry;

pub(crate) use entry::{Entry, FieldFault, FormTexts};

use super::visit::Pairs;
use std::collections::BTreeMap;

/// The hidden field with which version of the thing a form was filled in.
pub(crate) const VERSION: &str = "version";

/// Reads the fields of a form, and notes what is wrong with them.
#[derive(Debug)]
pub(crate) struct Entered<'a> {
    form: &'a Pairs,
    faults: BTreeMap<&'static str, FieldFault>,
}

impl<'a> Entered<'a> {
    pub(crate) fn of(form: &'a Pairs) -> Self {
        Self { form, faults: BTreeMap::new() }
    }

    /// Without spaces around it. `None`: it is empty.
    pub(crate) fn text(&mut self, field: &'static str, max_bytes: usize) -> Option<String> {
        let text = self.form.get(field).map(str::trim).filter(|text| !text.is_empty())?;
        if text.len() > max_bytes {
            self.fault(field, FieldFault::TooLong { max_bytes });
            return None;
        }
        Some(text.to_owned())
    }

    pub(crate) fn required(&mut self, field: &'static str, max_bytes: usize) -> Option<String> {
        let text = self.text(field, max_bytes);
        if text.is_none() && !self.faults.contains_key(field) {
            self.fault(field, FieldFault::Missing);
        }
        text
    }

    pub(crate) fn number(&mut self, field: &'static str, least: u64, most: u64) -> Option<u64> {
        let text = self.form.get(field).map(str::trim).filter(|text| !text.is_empty())?;
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Some(number),
            _ => {
                self.fault(field, FieldFault::NotANumber { least, most });
                None
            }
        }
    }

    /// One in each line; empty lines are left out.
    pub(crate) fn lines(&self, field: &str) -> Vec<String> {
        let lines = self.form.get(field).unwrap_or_default().lines().map(str::trim);
        lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The first fault of a field counts.
    pub(crate) fn fault(&mut self, field: &'static str, fault: FieldFault) {
        self.faults.entry(field).or_insert(fault);
    }

    /// Whether the thing has changed since the form was filled in.
    pub(crate) fn is_stale(&self, version: &str) -> bool {
        self.form.get(VERSION) != Some(version)
    }

    pub(crate) fn finish(self) -> Result<(), BTreeMap<&'static str, FieldFault>> {
        if self.faults.is_empty() { Ok(()) } else { Err(self.faults) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_noted_at_its_field() {
        let form = Pairs::read(b"name=+&url=xxxx&rate=0&types=a%0A%0A+b+&version=7");
        let mut entered = Entered::of(&form);
        assert_eq!(entered.required("name", 10), None);
        assert_eq!(entered.required("url", 3), None);
        assert_eq!(entered.number("rate", 1, 9), None);
        assert_eq!(entered.text("missing", 3), None);
        assert_eq!(entered.lines("types"), ["a", "b"]);
        assert!(entered.is_stale("8") && !entered.is_stale("7"));
        let faults = entered.finish().unwrap_err();
        let expected = [
            ("name", FieldFault::Missing),
            ("rate", FieldFault::NotANumber { least: 1, most: 9 }),
            ("url", FieldFault::TooLong { max_bytes: 3 }),
        ];
        assert_eq!(faults.into_iter().collect::<Vec<_>>(), expected);
    }
}
