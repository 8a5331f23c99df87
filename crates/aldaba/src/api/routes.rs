//! How a route is declared: its path, who may use it, what it takes and what it answers. The router, the
//! checks of access and the API's document are all made from this one declaration.

use super::auth::{self, Access};
use super::room::Holder;
use super::{Api, Error, answer, rates};
use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use http::{Method, StatusCode};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// One operation of the API.
pub(super) struct Route {
    pub(super) method: Method,
    /// Below `/api/v1`.
    pub(super) path: &'static str,
    /// As SDKs know it, such as `v1.application.list`.
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) access: Access,
    pub(super) query: Vec<Parameter>,
    pub(super) body: Option<Shape>,
    /// A request without the body is one with an empty body.
    pub(super) bodiless: bool,
    pub(super) answers: Vec<(StatusCode, Answer)>,
    handler: MethodRouter<Api>,
}

/// A parameter of the query string.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) form: Form,
    pub(super) about: &'static str,
}

#[derive(Clone, Copy)]
pub(super) enum Form {
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

pub(super) enum Answer {
    Nothing,
    Json(Shape),
    /// In pages.
    List(Shape),
    /// The body of errors.
    Error,
}

/// The name and the schema of a body, and of all that it is made of.
pub(super) struct Shape {
    pub(super) name: String,
    /// They are many, and only the document needs them: they are made for it.
    pub(super) schemas: fn() -> Vec<(String, RefOr<Schema>)>,
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
            bodiless: false,
            answers: Vec::new(),
            handler: on(filter, handler),
        }
    }

    pub(super) fn get<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::GET, path, access, handler)
    }

    pub(super) fn post<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::POST, path, access, handler)
    }

    pub(super) fn put<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::PUT, path, access, handler)
    }

    pub(super) fn patch<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::PATCH, path, access, handler)
    }

    pub(super) fn delete<H: Handler<T, Api>, T: 'static>(
        path: &'static str,
        access: Access,
        handler: H,
    ) -> Self {
        Self::new(Method::DELETE, path, access, handler)
    }

    pub(super) fn named(mut self, id: &'static str, summary: &'static str) -> Self {
        (self.id, self.summary) = (id, summary);
        self
    }

    pub(super) fn query(mut self, name: &'static str, form: Form, about: &'static str) -> Self {
        self.query.push(Parameter { name, form, about });
        self
    }

    /// `limit` and `iterator`.
    pub(super) fn paged(self) -> Self {
        self.query("limit", Form::Integer { least: 1, most: 250 }, "How many items at most; 50 if not given")
            .query(
                "iterator",
                Form::Text,
                "Where to go on: the `iterator` or `prevIterator` of a former answer",
            )
    }

    pub(super) fn ordered(self) -> Self {
        self.query("order", Form::OneOf(&["ascending", "descending"]), "Which items come first")
    }

    pub(super) fn with_content(self, about: &'static str) -> Self {
        self.query("with_content", Form::Boolean, about)
    }

    pub(super) fn takes<T: ToSchema>(mut self) -> Self {
        self.body = Some(Shape::of::<T>());
        self
    }

    pub(super) fn may_take<T: ToSchema>(self) -> Self {
        Self { bodiless: true, ..self.takes::<T>() }
    }

    pub(super) fn answers<T: ToSchema>(self, status: StatusCode) -> Self {
        self.answer(status, Answer::Json(Shape::of::<T>()))
    }

    pub(super) fn lists<T: ToSchema>(self) -> Self {
        self.paged().lists_all::<T>()
    }

    /// A list that takes no `limit`.
    pub(super) fn lists_all<T: ToSchema>(self) -> Self {
        self.answer(StatusCode::OK, Answer::List(Shape::of::<T>()))
    }

    pub(super) fn answers_nothing(self) -> Self {
        self.answer(StatusCode::NO_CONTENT, Answer::Nothing)
    }

    /// An error beyond those that every route of its kind has.
    pub(super) fn or_error(self, status: StatusCode) -> Self {
        self.answer(status, Answer::Error)
    }

    pub(super) fn may_conflict(self) -> Self {
        self.or_error(StatusCode::CONFLICT)
    }

    fn answer(mut self, status: StatusCode, answer: Answer) -> Self {
        self.answers.push((status, answer));
        self
    }
}

/// Where the routes of an API are.
pub(super) fn router(api: &Api, routes: Vec<Route>) -> Router<Api> {
    routes.into_iter().fold(Router::new(), |router, route| {
        let checked = match route.access {
            Access::Open => route.handler,
            access => {
                let of_app = route.path.starts_with("/app/{app_id}");
                route.handler.layer(from_fn_with_state((api.clone(), access, of_app), admit))
            }
        };
        router.route(route.path, checked)
    })
}

/// Nobody reaches a handler whose token does not allow it, or who makes too many requests.
async fn admit(
    State((api, access, of_app)): State<(Api, Access, bool)>,
    mut request: Request,
    next: Next,
) -> Response {
    match auth::caller(&api, request.headers()).and_then(|caller| auth::allow(caller, access)) {
        Ok(caller) => {
            let app = of_app.then(|| request.uri());
            if let Err(refusal) = rates::admit(&api, &caller, request.method(), app).await {
                return refusal.into_response();
            }
            if let Err(refusal) = auth::still_counts(&api, &caller).await {
                return refusal.into_response();
            }
            let holder = Holder::from(&caller);
            request.extensions_mut().insert(caller);
            let response = next.run(request).await;
            if answer::is_small(&response) {
                return response;
            }
            answer::held(&api, holder, access, response).await
        }
        Err(refusal) => Error::into_response(refusal),
    }
}
