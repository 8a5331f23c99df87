//! Bodies that are another one but for a few fields. The document says of them what it says of that one.

use aldaba_api::read::{ApiBody, ApiRequest};
use serde_json::Value;
use std::borrow::Cow;
use std::marker::PhantomData;
use utoipa::openapi::schema::{Object, SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

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

/// A body of `aldaba-api` in the document.
pub(crate) struct Described<T>(PhantomData<T>);

fn described(schema: Value) -> RefOr<Schema> {
    serde_json::from_value(schema)
        .unwrap_or_else(|error| unreachable!("a declared body has a schema: {error}"))
}

impl<T: ApiBody> PartialSchema for Described<T> {
    fn schema() -> RefOr<Schema> {
        described(T::schema())
    }
}

impl<T: ApiBody> ToSchema for Described<T> {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed(T::NAME)
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        let mut nested = Vec::new();
        T::nested(&mut nested);
        schemas.extend(nested.into_iter().map(|(name, schema)| (name, described(schema))));
    }
}

impl<T: ApiRequest> crate::api::routing::route::Body for Described<T> {
    fn example() -> Value {
        T::example()
    }
}
