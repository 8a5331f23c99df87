//! Event types: what can happen, and what its payloads look like.

#[cfg(feature = "server")]
use crate::names::name as check_name;
#[cfg(feature = "server")]
use crate::read::{any_object, moment, name, names, object, text, toggle};
use crate::{Json, Timestamp, request, resource, response};

resource! {
    ($)
    new {
        /// A new event type.
        NewEventType "EventTypeIn" = {
            "name": "invoice.paid",
            "description": "An invoice was paid in full",
            "schemas": {"1": {
                "type": "object",
                "required": ["invoice"],
                "properties": {"invoice": {"type": "integer"}},
                "examples": [{"invoice": 42}],
            }},
        }
    }
    update {
        /// A whole event type, but for its name. Fields that are left out have their defaults.
        EventTypeUpdate "EventTypeUpdate" =
            {"description": "An invoice was paid, in full or in part", "groupName": "invoices"}
    }
    patch {
        /// Fields of an event type that change; null clears one.
        EventTypePatch "EventTypePatch" = {"deprecated": true}
    }
    shown {
        /// An event type.
        EventType "EventTypeOut" of EventTypeState
    }
    each event_type_fields;
    first {
        /// Such as `invoice.paid`.
        required name: String = name();
    }
    fields {
        /// For people.
        stored required description: String = text().bytes(16384);
        /// No longer offered to endpoints.
        stored given archived: bool = toggle();
        /// Not to be used any more.
        stored given deprecated: bool = toggle();
        /// Payloads are checked against the schemas; those that do not fit are refused.
        stored given validate: bool = toggle();
        /// JSON Schemas by their versions, such as `{"1": {…}}`.
        own nullable schemas: Json = object();
        /// Tokens of applications see it only if they have one of these flags.
        own nullable feature_flags: Vec<String> = names(100, check_name);
        /// The first of them, for older callers.
        own nullable feature_flag: String = name().undescribed();
        /// For people: event types with the same name belong together.
        stored nullable group_name: String = name();
    }
    once {
        /// Such as `invoice.paid`.
        required name: String = name(),
            "must be the name in the path, or be left out: an event type keeps its name";
    }
    last {
        /// When it was made.
        required created_at: Timestamp = moment();
        /// When it was last changed.
        required updated_at: Timestamp = moment();
    }
}

impl NewEventType {
    /// With a name.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), ..Self::default() }
    }
}

request! {
    /// An OpenAPI document, as `spec` or as `specRaw`.
    ImportOpenApi "EventTypeImportOpenApiIn" = {
        "spec": {
            "openapi": "3.1.0",
            "info": {"title": "Our events", "version": "1"},
            "webhooks": {"report.ready": {"post": {
                "description": "A report can be fetched",
                "requestBody": {"content": {"application/json": {"schema": {
                    "type": "object",
                    "required": ["report"],
                    "properties": {"report": {"type": "integer"}},
                }}}},
            }}},
        },
        "dryRun": true,
    } {
        /// The document.
        nullable spec: Json = any_object();
        /// The same as a text: YAML or JSON.
        nullable spec_raw: String = text();
        /// Only say what would be done.
        given dry_run: bool = toggle();
        /// Archive all event types that are not in the document.
        given replace_all: bool = toggle();
    }
}

response! {
    /// What came of a document.
    ImportedOpenApi "EventTypeImportOpenApiOut" of ImportedOpenApiView {
        /// In detail.
        required data: ImportedEventTypes;
    }
}

response! {
    /// What came of a document, in detail.
    ImportedEventTypes "EventTypeImportOpenApiOutData" of ImportedEventTypesView {
        /// Those that were made or changed.
        required modified: Vec<String>;
        /// What a dry run would make of them.
        nullable to_modify ["to_modify"]: Vec<ImportedEventType>;
        /// Those that were archived, or would be.
        required archived: Vec<String>;
    }
}

response! {
    /// An event type of a document.
    ImportedEventType "EventTypeFromOpenApi" of ImportedEventTypeView {
        /// Such as `invoice.paid`.
        required name: String;
        /// For people.
        required description: String;
        /// Not to be used any more.
        required deprecated: bool;
        /// JSON Schemas by their versions.
        nullable schemas: Json = any_object();
        /// Flags.
        nullable feature_flags: Vec<String>;
        /// The first of them.
        nullable feature_flag: String;
        /// For people.
        nullable group_name: String;
    }
}
