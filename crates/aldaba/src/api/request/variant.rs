//! Bodies that are another one but for a few fields. The document says of them what it says of that one.

use utoipa::PartialSchema;
use utoipa::openapi::schema::{Object, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

/// The schema of such a body.
pub(crate) struct Variant(Object);

impl Variant {
    /// The same as `T`, with something else said about it.
    pub(crate) fn of<T: PartialSchema>(about: &str) -> Self {
        let RefOr::T(Schema::Object(mut object)) = T::schema() else {
            unreachable!("a struct with fields is an object");
        };
        object.description = Some(about.to_owned());
        Self(object)
    }

    pub(crate) fn without(mut self, fields: &[&str]) -> Self {
        self.0.properties.retain(|name, _| !fields.contains(&name.as_str()));
        self.not_required(fields)
    }

    /// With the fields of `T` besides.
    pub(crate) fn with_fields_of<T: PartialSchema>(mut self) -> Self {
        let Self(others) = Self::of::<T>("");
        self.0.properties.extend(others.properties);
        self.0.required.extend(others.required);
        self
    }

    /// The field may be left out, or be null.
    pub(crate) fn optional(mut self, field: &str) -> Self {
        if let Some(RefOr::T(Schema::Object(property))) = self.0.properties.get_mut(field)
            && let SchemaType::Type(only) = property.schema_type.clone()
        {
            property.schema_type = SchemaType::Array(vec![only, Type::Null]);
        }
        self.not_required(&[field])
    }

    fn not_required(mut self, fields: &[&str]) -> Self {
        self.0.required.retain(|name| !fields.contains(&name.as_str()));
        self
    }
}

impl From<Variant> for RefOr<Schema> {
    fn from(Variant(object): Variant) -> Self {
        Self::T(Schema::Object(object))
    }
}
