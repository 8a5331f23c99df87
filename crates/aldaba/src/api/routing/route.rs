//! How a route is declared: its path, who may use it, what it takes and what it answers. The router, the
//! checks of access and the API's document are all made from this one declaration.

use super::auth::{self, Access};
use crate::api::limits::memory_budget::Holder;
use crate::api::limits::rates;
use crate::api::request::body::Pending;
use crate::api::request::query::Query;
use crate::api::response::answer;
use crate::api::{Api, Error};
use axum::Router;
use axum::body::HttpBody;
use axum::extract::{FromRequest, Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::{Method, StatusCode};
use serde_json::Value;
use std::sync::Arc;
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// What a request has as its body.
pub(crate) trait Body: ToSchema {
    /// One that is accepted as it stands. The document shows it, and whoever tries out the route sends it.
    fn example() -> Value;
}

/// Says what an example of a body is, beside its declaration.
macro_rules! example {
    ($body:ty, $($json:tt)+) => {
        impl $crate::api::routing::route::Body for $body {
            fn example() -> serde_json::Value {
                serde_json::json!($($json)+)
            }
        }
    };
}
pub(crate) use example;

/// One operation of the API.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Below `/api/v1`.
    pub(crate) path: &'static str,
    /// As SDKs know it, such as `v1.application.list`.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) query: Vec<Parameter>,
    pub(crate) body: Option<Shape>,
    /// Only the document needs it, so it is made for that.
    pub(crate) example: Option<fn() -> Value>,
    /// A request without the body is one with an empty body.
    pub(crate) bodiless: bool,
    /// It honours the header `idempotency-key`.
    pub(crate) keyed: bool,
    pub(crate) answers: Vec<(StatusCode, Answer)>,
    handler: MethodRouter<Api>,
}

/// A parameter of the query string.
pub(crate) struct Parameter {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) about: &'static str,
}

#[derive(Clone, Copy)]
pub(crate) enum Form {
    Boolean,
    Integer {
        least: i64,
        most: i64,
    },
    /// RFC 3339.
    Moment,
    Text,
    /// Separated by commas, or given several times.
    Names,
    OneOf(&'static [&'static str]),
    OneNumberOf(&'static [i64]),
}

pub(crate) enum Answer {
    Nothing,
    Json(Shape),
    /// In pages.
    List(Shape),
    /// The body of errors.
    Error,
}

/// The name and the schema of a body, and of all that it is made of.
pub(crate) struct Shape {
    pub(crate) name: String,
    /// They are many, and only the document needs them: they are made for it.
    pub(crate) schemas: fn() -> Vec<(String, RefOr<Schema>)>,
}

impl Shape {
    fn of<T: ToSchema>() -> Self {
        Self { name: T::name().into_owned(), schemas: schemas::<T> }
    }
}

fn schemas<T: ToSchema>() -> Vec<(String, RefOr<Schema>)> {
    let mut schemas = vec![(T::name().into_owned(), <T as PartialSchema>::schema())];
    T::schemas(&mut schemas);
    schemas
}

impl Route {
    fn new<H, T>(method: Method, path: &'static str, access: Access, handler: H) -> Self
    where
        H: Handler<T, Api>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).unwrap_or(MethodFilter::TRACE);
        Self {
            method,
            path,
            id: "",
            summary: "",
            access,
            query: Vec::new(),
            body: None,
            example: None,
            bodiless: false,
            keyed: false,
            answers: Vec::new(),
            handler: on(filter, handler),
        }
    }

    pub(crate) fn get<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::GET, path, access, handler)
    }

    pub(crate) fn post<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::POST, path, access, handler)
    }

    pub(crate) fn put<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::PUT, path, access, handler)
    }

    pub(crate) fn patch<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::PATCH, path, access, handler)
    }

    pub(crate) fn delete<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::DELETE, path, access, handler)
    }

    pub(crate) fn named(mut self, id: &'static str, summary: &'static str) -> Self {
        (self.id, self.summary) = (id, summary);
        self
    }

    /// For routes whose handlers ask `Pending::once`.
    pub(crate) fn keyed(self) -> Self {
        Self { keyed: true, ..self }
    }

    pub(crate) fn query(mut self, name: &'static str, form: Form, about: &'static str) -> Self {
        self.query.push(Parameter { name, form, about });
        self
    }

    /// `limit` and `iterator`.
    pub(crate) fn paged(self) -> Self {
        self.query("limit", Form::Integer { least: 1, most: 250 }, "How many items at most; 50 if not given")
            .query(
                "iterator",
                Form::Text,
                "Where to go on: the `iterator` or `prevIterator` of a former answer",
            )
    }

    pub(crate) fn ordered(self) -> Self {
        self.query("order", Form::OneOf(&["ascending", "descending"]), "Which items come first")
    }

    pub(crate) fn with_content(self, about: &'static str) -> Self {
        self.query("with_content", Form::Boolean, about)
    }

    pub(crate) fn takes<T: Body>(mut self) -> Self {
        self.body = Some(Shape::of::<T>());
        self.example = Some(T::example);
        self
    }

    pub(crate) fn may_take<T: Body>(self) -> Self {
        Self { bodiless: true, ..self.takes::<T>() }
    }

    pub(crate) fn answers<T: ToSchema>(self, status: StatusCode) -> Self {
        self.answer(status, Answer::Json(Shape::of::<T>()))
    }

    pub(crate) fn lists<T: ToSchema>(self) -> Self {
        self.paged().lists_all::<T>()
    }

    /// A list that takes no `limit`.
    pub(crate) fn lists_all<T: ToSchema>(self) -> Self {
        self.answer(StatusCode::OK, Answer::List(Shape::of::<T>()))
    }

    pub(crate) fn answers_nothing(self) -> Self {
        self.answer(StatusCode::NO_CONTENT, Answer::Nothing)
    }

    /// An error beyond those that every route of its kind has.
    pub(crate) fn or_error(self, status: StatusCode) -> Self {
        self.answer(status, Answer::Error)
    }

    pub(crate) fn may_conflict(self) -> Self {
        self.or_error(StatusCode::CONFLICT)
    }

    fn answer(mut self, status: StatusCode, answer: Answer) -> Self {
        self.answers.push((status, answer));
        self
    }
}

/// What stands before a route's handler.
#[derive(Clone)]
struct Entry {
    api: Api,
    access: Access,
    of_app: bool,
    /// Of a route that refuses others: the parameters that it takes.
    parameters: Option<Arc<[&'static str]>>,
    /// It changes something, and takes no body.
    takes_nothing: bool,
}

/// What the ids of routes begin with that the API of Svix does not have, or at least its SDKs.
const OWN: [&str; 12] = [
    "v1.api-key.",
    "v1.audit.",
    "v1.authentication.whoami",
    "v1.delivery.",
    "v1.dispatch.",
    "v1.endpoint.health",
    "v1.host.",
    "v1.ingest.event.",
    "v1.ingest.log.",
    "v1.job.",
    "v1.policy.",
    "v1.profile.",
];

impl Route {
    /// Whether it refuses parameters of the query that it does not know. Routes of Svix that only read pass over them:
    /// SDKs may send some that belong to newer servers.
    pub(crate) fn refuses_parameters(&self) -> bool {
        self.is_strict() || OWN.iter().any(|own| self.id.starts_with(own))
    }

    /// Whether it refuses what it does not know: a request that asks for less than all, in a word that is passed over,
    /// would destroy, send or open more than was meant.
    fn is_strict(&self) -> bool {
        let reads = self.access.only_reads() && self.access != Access::Known;
        self.method != Method::GET && !reads
    }
}

/// Where the routes of an API are.
pub(crate) fn router(api: &Api, routes: Vec<Route>) -> Router<Api> {
    routes.into_iter().fold(Router::new(), |router, route| {
        let strict = route.is_strict();
        let checked = match route.access {
            Access::Open => route.handler,
            access => {
                let of_app = route.path.starts_with("/app/{app_id}");
                let refuses = route.refuses_parameters();
                let parameters = refuses.then(|| route.query.iter().map(|known| known.name).collect());
                let takes_nothing = strict && route.body.is_none();
                let entry = Entry { api: api.clone(), access, of_app, parameters, takes_nothing };
                route.handler.layer(from_fn_with_state(entry, admit))
            }
        };
        router.route(route.path, checked)
    })
}

/// Nobody reaches a handler whose token does not allow it, who makes too many requests, or who asks a route that changes
/// something for what it does not know.
async fn admit(State(entry): State<Entry>, mut request: Request, next: Next) -> Response {
    let Entry { api, access, of_app, .. } = &entry;
    match auth::caller(api, request.headers()).and_then(|caller| auth::allow(caller, *access)) {
        Ok(caller) => {
            let app = of_app.then(|| request.uri());
            if let Err(refusal) = rates::admit(api, &caller, request.method(), app).await {
                return refusal.into_response();
            }
            if let Err(refusal) = auth::still_counts(api, &caller).await {
                return refusal.into_response();
            }
            let holder = Holder::from(&caller);
            request.extensions_mut().insert(caller);
            let request = match entry.understood(request).await {
                Ok(request) => request,
                Err(refusal) => return refusal.into_response(),
            };
            let response = next.run(request).await;
            if answer::is_small(&response) {
                return response;
            }
            answer::held(api, holder, *access, response).await
        }
        Err(refusal) => Error::into_response(refusal),
    }
}

impl Entry {
    /// The request, if it has nothing that its route would pass over.
    async fn understood(&self, request: Request) -> Result<Request, Error> {
        if let Some(known) = &self.parameters
            && request.uri().query().is_some()
        {
            Query::of_uri(request.uri()).refuse_others(known)?;
        }
        if !self.takes_nothing || request.body().is_end_stream() {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let pending = Request::from_parts(parts.clone(), body);
        let body = Pending::from_request(pending, &self.api).await?.read().await?;
        if !matches!(body.bytes.trim_ascii(), b"" | b"null") {
            let mut fields = body.text().fields()?;
            fields.refuse_others(&[]);
            fields.finish()?;
        }
        Ok(Request::from_parts(parts, axum::body::Body::empty()))
    }
}
