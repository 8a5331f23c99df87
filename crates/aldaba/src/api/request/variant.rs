//! Bodies that are another one but for a few fields. The document says of them what it says of that one.

use crate::api::routing::route::{DocumentBody, RequestBody};
use aldaba_api::read::schema::nest;
use aldaba_api::read::{ApiBody, ApiRequest};
use serde_json::Value;
use std::borrow::Cow;
use std::marker::PhantomData;
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

/// A body of `aldaba-api` in the document.
pub(crate) struct Described<T>(PhantomData<T>);

impl<T: ApiBody> DocumentBody for Described<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(T::NAME)
    }

    fn schemas() -> Vec<(String, Value)> {
        let mut schemas = Vec::new();
        nest::<T>(&mut schemas);
        schemas
    }
}

impl<T: ApiRequest> RequestBody for Described<T> {
    fn example() -> Value {
        T::example()
    }
}
