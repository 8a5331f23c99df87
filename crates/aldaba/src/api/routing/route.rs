//! The declaration of a route: path, access, parameters, body and responses. It gives the router, the checks before
//! the handler, and the API's document.

use super::auth::{self, Access};
use crate::api::limits::memory_budget::Holder;
use crate::api::limits::rates;
use crate::api::request::body::Pending;
use crate::api::request::query::Query;
pub(crate) use crate::api::request::query::{Form, Parameter};
use crate::api::response::answer;
use crate::api::response::page::MAX_LIMIT;
use crate::api::{Api, Error};
use aldaba_api::read::schema::nest;
use aldaba_api::read::{ApiBody, ApiRequest};
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

/// One operation of the API.
pub(crate) struct Route {
    pub(crate) method: Method,
    /// Below `/api/v1`.
    pub(crate) path: &'static str,
    /// The operation's name in SDKs, such as `v1.application.list`.
    pub(crate) id: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) access: Access,
    pub(crate) query: Vec<Parameter>,
    pub(crate) body: Option<BodySchema>,
    /// Only the document calls it.
    pub(crate) example: Option<fn() -> Value>,
    /// The body may be left out.
    pub(crate) bodiless: bool,
    /// It honours the header `idempotency-key`.
    pub(crate) keyed: bool,
    /// It ignores its query string.
    pub(crate) any_query: bool,
    pub(crate) answers: Vec<(StatusCode, ResponseBody)>,
    handler: MethodRouter<Api>,
}

pub(crate) enum ResponseBody {
    Nothing,
    Json(BodySchema),
    /// In pages.
    List(BodySchema),
    /// Lines of JSON, as they are made.
    Lines,
    /// The body of errors.
    Error,
}

/// The name and the schema of a body, and of its parts.
pub(crate) struct BodySchema {
    pub(crate) name: &'static str,
    /// Its own schema first. Only the document calls it: the schemas are many.
    pub(crate) schemas: fn() -> Vec<(String, Value)>,
}

impl BodySchema {
    fn of<T: ApiBody>() -> Self {
        let schemas = || {
            let mut schemas = Vec::new();
            nest::<T>(&mut schemas);
            schemas
        };
        Self { name: T::NAME, schemas }
    }
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
            any_query: false,
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

    /// For health checks, which must not fail for what a caller adds to the URL.
    pub(crate) fn any_query(self) -> Self {
        Self { any_query: true, ..self }
    }

    pub(crate) fn query(mut self, name: &'static str, form: Form, about: &'static str) -> Self {
        self.query.push(Parameter { name, form, about });
        self
    }

    /// `limit` and `iterator`.
    pub(crate) fn paged(self) -> Self {
        self.query(
            "limit",
            Form::Integer { least: 1, most: MAX_LIMIT as i64 },
            "How many items at most; 50 if not given",
        )
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

    pub(crate) fn takes<T: ApiRequest>(mut self) -> Self {
        self.body = Some(BodySchema::of::<T>());
        self.example = Some(T::example);
        self
    }

    pub(crate) fn may_take<T: ApiRequest>(self) -> Self {
        Self { bodiless: true, ..self.takes::<T>() }
    }

    pub(crate) fn answers<T: ApiBody>(self, status: StatusCode) -> Self {
        self.answer(status, ResponseBody::Json(BodySchema::of::<T>()))
    }

    pub(crate) fn lists<T: ApiBody>(self) -> Self {
        self.paged().lists_all::<T>()
    }

    /// A list that takes no `limit`.
    pub(crate) fn lists_all<T: ApiBody>(self) -> Self {
        self.answer(StatusCode::OK, ResponseBody::List(BodySchema::of::<T>()))
    }

    pub(crate) fn answers_nothing(self) -> Self {
        self.answer(StatusCode::NO_CONTENT, ResponseBody::Nothing)
    }

    /// Lines of JSON, which are sent while they are made.
    pub(crate) fn streams_lines(self) -> Self {
        self.answer(StatusCode::OK, ResponseBody::Lines)
    }

    /// An error that not every route of its kind has.
    pub(crate) fn or_error(self, status: StatusCode) -> Self {
        self.answer(status, ResponseBody::Error)
    }

    pub(crate) fn may_conflict(self) -> Self {
        self.or_error(StatusCode::CONFLICT)
    }

    fn answer(mut self, status: StatusCode, answer: ResponseBody) -> Self {
        self.answers.push((status, answer));
        self
    }
}

/// The checks before a route's handler.
#[derive(Clone)]
struct RouteChecks {
    api: Api,
    access: Access,
    of_app: bool,
    parameters: Arc<[Parameter]>,
    /// The route changes something, and takes no body.
    takes_nothing: bool,
}

impl Route {
    /// Whether the handler reads no body and must refuse one: a body that is ignored may ask for less than the
    /// request does.
    fn refuses_bodies(&self) -> bool {
        let reads = self.access.only_reads() && self.access != Access::Known;
        self.method != Method::GET && !reads && self.body.is_none()
    }
}

/// The router of all routes.
pub(crate) fn router(api: &Api, routes: Vec<Route>) -> Router<Api> {
    routes.into_iter().fold(Router::new(), |router, route| {
        let checks = RouteChecks {
            api: api.clone(),
            access: route.access,
            of_app: route.path.starts_with("/app/{app_id}"),
            takes_nothing: route.refuses_bodies(),
            parameters: route.query.into(),
        };
        let checked = match route.access {
            _ if route.any_query => route.handler,
            Access::Open => route.handler.layer(from_fn_with_state(checks, read_request)),
            _ => route.handler.layer(from_fn_with_state(checks, admit)),
        };
        router.route(route.path, checked)
    })
}

/// Reads the request of a route that anybody may use.
async fn read_request(State(checks): State<RouteChecks>, request: Request, next: Next) -> Response {
    match checks.understood(request).await {
        Ok(request) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Checks the caller's token and rate, and reads the request, before the handler runs.
async fn admit(State(checks): State<RouteChecks>, mut request: Request, next: Next) -> Response {
    let RouteChecks { api, access, of_app, .. } = &checks;
    match auth::caller(api, request.headers()).and_then(|caller| auth::allow(caller, *access)) {
        Ok(caller) => {
            let app = of_app.then(|| request.uri());
            if let Err(refusal) = rates::admit(api, &caller, request.method(), app).await {
                return refusal.into_response();
            }
            if let Err(refusal) = api.ask(&caller).check_own_application().await {
                return Error::from(refusal).into_response();
            }
            let holder = Holder::from(&caller);
            request.extensions_mut().insert(caller);
            let request = match checks.understood(request).await {
                Ok(request) => request,
                Err(refusal) => return refusal.into_response(),
            };
            let response = next.run(request).await;
            if answer::is_accounted(&response) {
                return response;
            }
            answer::held(api, holder, *access, response).await
        }
        Err(refusal) => Error::into_response(refusal),
    }
}

impl RouteChecks {
    /// Reads the query string, and refuses a body that the handler would not read.
    async fn understood(&self, mut request: Request) -> Result<Request, Error> {
        if let Some(text) = request.uri().query() {
            let query = Query::read(text, &self.parameters, self.api.limits.unknown_fields)?;
            request.extensions_mut().insert(query);
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
