//! The API's document (OpenAPI 3.1), made from the declared routes.

use super::guides::{self, Guide};
use crate::api::routing::auth::Access;
use crate::api::routing::route::{BodySchema, Form, Parameter, ResponseBody, Route};
use crate::api::source::inbound_request;
use aldaba_api::TakenIn;
use aldaba_api::read::ApiBody;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

const ABOUT: &str = "Accepts events and delivers each to every subscribed endpoint, with retries, until it is delivered \
or lies in the dead letter with its whole history.\n\nWhere a path has an id, the caller's own name for the thing (`uid`, `eventId`) \
does as well, but for `jwks.json`, which anybody may read. Errors have a `code` and a `detail`; what is wrong with a request is listed under `detail` with its place: \
[errors](/docs/guides/errors).\n\nTo try a route out here, make a token with `aldaba token create` and give it to *Authorize*. Every body \
has an example that is accepted as it stands; ids in paths are those of your own things, from the answers to what you have made. URLs on \
`example.com` are placeholders: put a receiver of your own in their place, or the server sends its requests, and its retries, there. Begin \
with `POST /api/v1/app`, then an endpoint, then a message. [How do I …?](/docs/guides/README) answers by recipes.";

/// The description at the top of the page.
fn introduction() -> String {
    let link = |guide: &Guide| format!("- [{}](/docs/guides/{})", guide.title, guide.name);
    let links: Vec<_> = guides::ALL.iter().map(link).collect();
    format!("{ABOUT}\n\n### Guides\n\n{}", links.join("\n"))
}

pub(crate) fn document(routes: &[Route]) -> Value {
    let mut schemas = Map::new();
    let mut paths = Map::new();
    for route in routes {
        let shapes = route.answers.iter().filter_map(|(_, answer)| match answer {
            ResponseBody::Json(shape) | ResponseBody::List(shape) => Some(shape),
            ResponseBody::Nothing | ResponseBody::Lines | ResponseBody::Error => None,
        });
        for (name, schema) in shapes.chain(&route.body).flat_map(|shape| (shape.schemas)()) {
            schemas.insert(name, schema);
        }
        for (_, answer) in &route.answers {
            if let ResponseBody::List(shape) = answer {
                schemas.insert(list_name(shape), list_schema(shape));
            }
        }
        let path = paths.entry(format!("/api/v1{}", route.path)).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation(route);
    }
    paths.insert(inbound_request::PATH.into(), describe_door());
    schemas.insert("Error".into(), error_schema());
    schemas.insert("Problems".into(), problems_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Aldaba",
            "version": env!("CARGO_PKG_VERSION"),
            "description": introduction(),
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {
                "type": "http",
                "scheme": "bearer",
                "description": "An API key, or a token signed with the server's secret (`aldaba token create`)",
            }},
        },
    })
}

/// The URLs of sources. They are outside of the API: the token in the path is the only credential.
fn describe_door() -> Value {
    let parameters = json!([{
        "name": "token",
        "in": "path",
        "required": true,
        "description": "What a source's `ingestUrl` ends with",
        "schema": {"type": "string"},
    }]);
    let received = json!({
        "description": "The event is safe on disk, came before, or is one that the source does not want; or a challenge was \
                        answered. A source may have an answer of its own",
        "content": {
            "application/json": {"schema": TakenIn::described().schema},
            "*/*": {"schema": {"type": "string"}},
        },
    });
    let errors = |statuses: &[u16]| {
        let statuses = statuses.iter().filter_map(|status| StatusCode::from_u16(*status).ok());
        let described =
            statuses.map(|status| (status.as_str().to_owned(), content(status, &ResponseBody::Error)));
        described.collect::<Map<_, _>>()
    };
    let mut posted = errors(&[400, 401, 404, 405, 408, 409, 413, 422, 429, 431, 503, 507]);
    posted.insert("200".into(), received.clone());
    let mut got = errors(&[403, 404, 405, 429, 503]);
    got.insert("200".into(), received);
    json!({
        "post": {
            "operationId": "in.receive",
            "summary": "Takes in a webhook of another sender, once",
            "tags": ["Inbound"],
            "parameters": parameters,
            "requestBody": {"required": false, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}},
            "responses": posted,
            "security": [],
        },
        "get": {
            "operationId": "in.challenge",
            "summary": "Answers a sender that asks whether this is its receiver (the type `meta` alone)",
            "tags": ["Inbound"],
            "parameters": parameters,
            "responses": got,
            "security": [],
        },
    })
}

fn operation(route: &Route) -> Value {
    let path_names = route.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let in_path = path_names.map(|name| {
        json!({"name": name, "in": "path", "required": true, "description": path_about(route, name), "schema": {"type": "string"}})
    });
    let parameters: Vec<_> =
        in_path.chain(route.query.iter().map(query_parameter)).chain(idempotency(route)).collect();
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.summary,
        "tags": [tag(route)],
        "parameters": parameters,
        "responses": responses(route),
    });
    if let Some(shape) = &route.body {
        operation["requestBody"] = json!({
            "required": !route.bodiless,
            "content": {"application/json": {
                "schema": reference(shape.name),
                "example": route.example.map(|example| example()),
            }},
        });
    }
    operation["security"] = match route.access {
        Access::Open => json!([]),
        access => json!([{"token": [access.name()]}]),
    };
    operation
}

/// The resource of the route: the middle of its id, as words.
fn tag(route: &Route) -> String {
    let resource = route.id.split('.').nth(1).unwrap_or("other");
    let words = resource.split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    });
    words.collect::<Vec<_>>().join(" ")
}

fn idempotency(route: &Route) -> Option<Value> {
    route.keyed.then(|| {
        json!({
            "name": "idempotency-key",
            "in": "header",
            "description": "A repeat of the request with the same key has no second effect and gets the first answer, for 24 hours at least. The same request: same key, method, route, organization, and the same things in the path, by id or uid; token, query and body do not count",
            "schema": {"type": "string"},
        })
    })
}

fn path_about(route: &Route, name: &str) -> &'static str {
    match name {
        "app_id" if route.access == Access::Open => "The application's id; its uid does not do here",
        "app_id" => "The application's id or uid",
        "endpoint_id" => "The endpoint's id or uid",
        "msg_id" => "The message's id or eventId",
        "attempt_id" => "The attempt's id",
        "delivery_id" => "The delivery's id",
        "task_id" => "The background task's id",
        "event_type_name" => "The event type's name",
        "key_id" => "The API key's id or prefix",
        "source_id" => "The source's id or uid",
        "event_id" => "The id of the event's message, or what its sender calls it",
        "policy_name" => "The policy's name",
        "profile_name" => "The wire profile's name",
        "origin" => "Scheme, host and port, percent-encoded: `https%3A%2F%2Fexample.com`",
        _ => "Its id",
    }
}

fn query_parameter(parameter: &Parameter) -> Value {
    let mut described = json!({
        "name": parameter.name,
        "in": "query",
        "description": parameter.about,
        "schema": match parameter.form {
            Form::Boolean => json!({"type": "boolean"}),
            Form::OnlyFalse(_) => json!({"type": "boolean", "enum": [false]}),
            Form::Integer { least, most } => json!({"type": "integer", "minimum": least, "maximum": most}),
            Form::Moment => json!({"type": "string", "format": "date-time"}),
            Form::Text | Form::CheckedText(_) => json!({"type": "string"}),
            Form::Names => json!({"type": "array", "items": {"type": "string"}}),
            Form::OneOf(names) => json!({"type": "string", "enum": names}),
            Form::OneNumberOf(numbers) => json!({"type": "integer", "enum": numbers}),
        },
    });
    if matches!(parameter.form, Form::Names) {
        described["style"] = "form".into();
        described["explode"] = false.into();
    }
    described
}

fn responses(route: &Route) -> Map<String, Value> {
    let own = route.answers.iter().map(|(status, answer)| (*status, content(*status, answer)));
    let common =
        common_errors(route).into_iter().map(|status| (status, content(status, &ResponseBody::Error)));
    // The route's own responses come last and replace the common ones.
    common.chain(own).map(|(status, described)| (status.as_str().to_owned(), described)).collect()
}

/// The errors of every route of this kind.
fn common_errors(route: &Route) -> Vec<StatusCode> {
    // An overloaded server, or a store that cannot respond now.
    let mut statuses = vec![StatusCode::SERVICE_UNAVAILABLE, StatusCode::BAD_REQUEST];
    if route.access != Access::Open {
        statuses.extend([StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::TOO_MANY_REQUESTS]);
        // A caller for one application, once that is deleted.
        statuses.push(StatusCode::NOT_FOUND);
    }
    // The result of an idempotency key may have been deleted.
    if route.path.contains('{') || route.keyed {
        statuses.push(StatusCode::NOT_FOUND);
    }
    if route.body.is_some() || !route.any_query {
        statuses.push(StatusCode::UNPROCESSABLE_ENTITY);
    }
    if route.body.is_some() {
        statuses.extend([StatusCode::PAYLOAD_TOO_LARGE, StatusCode::REQUEST_TIMEOUT]);
    }
    if route.method != Method::GET {
        statuses.push(StatusCode::INSUFFICIENT_STORAGE);
    }
    statuses
}

fn content(status: StatusCode, answer: &ResponseBody) -> Value {
    let body = |media: &str, schema: Value| {
        let mut media_types = Map::new();
        media_types.insert(media.to_owned(), json!({ "schema": schema }));
        Value::Object(media_types)
    };
    let json = "application/json";
    let mut described = json!({"description": status.canonical_reason().unwrap_or_default()});
    match answer {
        ResponseBody::Nothing => {}
        ResponseBody::Json(shape) => described["content"] = body(json, reference(shape.name)),
        ResponseBody::List(shape) => described["content"] = body(json, reference(&list_name(shape))),
        ResponseBody::Lines => {
            described["content"] = body("application/x-ndjson", json!({"type": "string"}));
        }
        ResponseBody::Error if status == StatusCode::UNPROCESSABLE_ENTITY => {
            described["content"] = body(json, reference("Problems"));
        }
        ResponseBody::Error => described["content"] = body(json, reference("Error")),
    }
    if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
        described["headers"] = json!({"retry-after": {
            "description": "Seconds after which it is worth trying again",
            "schema": {"type": "integer"},
        }});
    }
    described
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}

fn list_name(shape: &BodySchema) -> String {
    format!("List{}", shape.name)
}

fn list_schema(shape: &BodySchema) -> Value {
    json!({
        "type": "object",
        "required": ["data", "iterator", "done"],
        "properties": {
            "data": {"type": "array", "items": reference(shape.name)},
            "iterator": {"type": ["string", "null"], "description": "Leads to the page that follows"},
            "prevIterator": {"type": "string", "description": "Leads to the page before; absent when there is no item"},
            "done": {"type": "boolean", "description": "No more follow in the direction of travel"},
        },
    })
}

fn error_schema() -> Value {
    json!({
        "type": "object",
        "required": ["code", "detail"],
        "properties": {
            "code": {"type": "string", "description": "For programs; docs/errors.md lists all codes"},
            "detail": {"type": "string", "description": "For people: what was wrong, and what to do"},
        },
    })
}

fn problems_schema() -> Value {
    json!({
        "type": "object",
        "required": ["code", "detail"],
        "properties": {"code": {"type": "string", "const": "validation"}, "detail": {"type": "array", "items": {
            "type": "object",
            "required": ["loc", "msg", "type"],
            "properties": {
                "loc": {"type": "array", "items": {"type": "string"}, "description": "Where: `body`, `query` or `path`, then the field; an item of a list is `[0]`"},
                "msg": {"type": "string"},
                "type": {"type": "string"},
            },
        }}},
    })
}
