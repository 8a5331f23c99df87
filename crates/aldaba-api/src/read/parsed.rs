//! Whole bodies.

use super::fields::{Fields, UnknownFields};
use super::problem::Problems;
use super::schema::Described;
use serde::Serialize;
use serde_json::Value;

/// A body that is described in the API's document.
pub trait ApiBody {
    /// Its name in the document.
    const NAME: &'static str;

    /// Its schema, and those that it refers to.
    fn described() -> Described;
}

/// The body of a request.
pub trait ApiRequest: ApiBody + Sized {
    /// The names of its fields, in their order.
    const KNOWN: &'static [&'static str];
    /// Fields of answers that a change may send back, and that change nothing.
    const READ_ONLY: &'static [&'static str];
    /// The fields that have an older name, with it.
    const OLDER: &'static [(&'static str, &'static str)];

    /// The fields of the objects in its fields, by the fields' names.
    fn inner() -> Vec<(&'static str, &'static [&'static str])> {
        Vec::new()
    }

    /// Refuses fields that it does not have.
    fn refuse_others(fields: &mut Fields) {
        fields.refuse_unknown(Self::KNOWN, Self::inner);
    }

    /// What the document says of one in an answer.
    fn shown() -> Value;

    /// Reads the fields and notes what is wrong with them. `is_change`: what it is about may be there already.
    fn read(fields: &mut Fields, is_change: bool) -> Self;

    /// One that is accepted as it stands.
    fn example() -> Value;
}

/// A body that has been read. It may have problems, and others may be noted.
#[derive(Clone, Debug)]
pub struct Parsed<T> {
    /// Fields with a problem have a default value.
    pub value: T,
    /// What is wrong.
    pub fields: Fields,
}

impl<T: ApiRequest> Parsed<T> {
    /// Reads all fields of a body.
    pub fn of(mut fields: Fields, is_change: bool) -> Self {
        fields.note_ambiguous(T::OLDER);
        if is_change {
            fields.forget(T::READ_ONLY);
        }
        T::refuse_others(&mut fields);
        Self { value: T::read(&mut fields, is_change), fields }
    }

    /// A change of what there is now: of two names for one field that say something else, the one counts that does not
    /// say what there is. A client may have read the field by both names, and changed one of them.
    #[must_use]
    pub fn against(mut self, current: &impl Serialize) -> Self {
        match self.fields.settled(|| serde_json::to_value(current).unwrap_or_default()) {
            Some(fields) => Self::of(fields, true),
            None => self,
        }
    }

    /// The body, if nothing is wrong with it.
    ///
    /// # Errors
    /// All that is wrong, in the order of the fields.
    pub fn finish(self) -> Result<T, Problems> {
        self.fields.finish_in_order(T::KNOWN)?;
        Ok(self.value)
    }
}

/// Reads a body.
///
/// # Errors
/// If it is not a JSON object.
pub fn parse<T: ApiRequest>(
    body: &[u8],
    is_change: bool,
    unknown: UnknownFields,
) -> Result<Parsed<T>, Problems> {
    Ok(Parsed::of(Fields::parse(body, unknown)?, is_change))
}
