//! The declaration of routes: path, access, and what answers. The table of all of them is in `pages`; nothing is reached past it.

use super::answer;
use super::fault::Fault;
use super::live::Block;
use super::visit::{Guest, Pairs, Visit};
use crate::api::Access;
use askama::Template;
use axum::response::Response;
use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::LazyLock;

/// A page: it is read as a whole, and rendered as a whole or in parts.
pub(crate) trait Page: Template + Sized + Send {
    fn load(visit: &Visit) -> impl Future<Output = Result<Self, Fault>> + Send;

    /// The parts that are rendered again while the page is open.
    fn live(&self) -> Result<Vec<Block>, askama::Error> {
        Ok(Vec::new())
    }
}

type Answering<T> = Pin<Box<dyn Future<Output = Result<T, Fault>> + Send>>;
type Showing = fn(Visit) -> Answering<Response>;
type Updating = fn(Visit) -> Answering<Vec<Block>>;
type Welcoming = Box<dyn Fn(Guest, Pairs) -> Answering<Response> + Send + Sync>;
type Acting = Box<dyn Fn(Visit, Pairs) -> Answering<Response> + Send + Sync>;

enum Handler {
    Page {
        show: Showing,
        update: Updating,
    },
    /// A GET that is no page, such as a file.
    Get(Acting),
    Post(Acting),
    /// For anybody, such as the page to log in.
    OpenGet(Welcoming),
    OpenPost(Welcoming),
}

/// One entry of the table.
pub(crate) struct PageRoute {
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    handler: Handler,
}

async fn shown<P: Page>(visit: Visit) -> Result<Response, Fault> {
    let page = P::load(&visit).await?;
    Ok(answer::html(StatusCode::OK, page.render()?))
}

async fn updated<P: Page>(visit: Visit) -> Result<Vec<Block>, Fault> {
    Ok(P::load(&visit).await?.live()?)
}

impl PageRoute {
    pub(crate) fn page<P: Page + 'static>(path: &'static str, access: Access) -> Self {
        let (show, update): (Showing, Updating) =
            (|visit| Box::pin(shown::<P>(visit)), |visit| Box::pin(updated::<P>(visit)));
        Self { path, access, handler: Handler::Page { show, update } }
    }

    pub(crate) fn get<F, Answer>(path: &'static str, access: Access, answers: F) -> Self
    where
        F: Fn(Visit) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Response, Fault>> + Send + 'static,
    {
        Self { path, access, handler: Handler::Get(Box::new(move |visit, _| Box::pin(answers(visit)))) }
    }

    pub(crate) fn post<F, Answer>(path: &'static str, access: Access, acts: F) -> Self
    where
        F: Fn(Visit, Pairs) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Response, Fault>> + Send + 'static,
    {
        Self {
            path,
            access,
            handler: Handler::Post(Box::new(move |visit, form| Box::pin(acts(visit, form)))),
        }
    }

    pub(crate) fn open_get<F, Answer>(path: &'static str, answers: F) -> Self
    where
        F: Fn(Guest, Pairs) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Response, Fault>> + Send + 'static,
    {
        let handler = Handler::OpenGet(Box::new(move |guest, form| Box::pin(answers(guest, form))));
        Self { path, access: Access::Open, handler }
    }

    pub(crate) fn open_post<F, Answer>(path: &'static str, acts: F) -> Self
    where
        F: Fn(Guest, Pairs) -> Answer + Send + Sync + 'static,
        Answer: Future<Output = Result<Response, Fault>> + Send + 'static,
    {
        let handler = Handler::OpenPost(Box::new(move |guest, form| Box::pin(acts(guest, form))));
        Self { path, access: Access::Open, handler }
    }

    pub(crate) fn method(&self) -> &'static str {
        match self.handler {
            Handler::Page { .. } | Handler::Get(_) | Handler::OpenGet(_) => "GET",
            Handler::Post(_) | Handler::OpenPost(_) => "POST",
        }
    }

    pub(crate) async fn answer(&self, visit: Visit, form: Pairs) -> Result<Response, Fault> {
        match &self.handler {
            Handler::Page { show, .. } => show(visit).await,
            Handler::Get(acts) | Handler::Post(acts) => acts(visit, form).await,
            Handler::OpenGet(_) | Handler::OpenPost(_) => Err(Fault::NoSuchPage),
        }
    }

    /// The answer to anybody, if the route is for anybody.
    pub(crate) fn welcome(&self) -> Option<&Welcoming> {
        match &self.handler {
            Handler::OpenGet(welcomes) | Handler::OpenPost(welcomes) => Some(welcomes),
            Handler::Page { .. } | Handler::Get(_) | Handler::Post(_) => None,
        }
    }

    /// The live parts of a page.
    pub(crate) async fn update(&self, visit: Visit) -> Result<Vec<Block>, Fault> {
        match &self.handler {
            Handler::Page { update, .. } => update(visit).await,
            _ => Ok(Vec::new()),
        }
    }

    /// What stands for the names in braces, if the path is one of this route's.
    fn matches(&self, path: &str) -> Option<BTreeMap<&'static str, String>> {
        let mut parameters = BTreeMap::new();
        let (mut wanted, mut given) = (self.path.split('/'), path.split('/'));
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return Some(parameters),
                (Some(wanted), Some(given)) => {
                    match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                        Some(name) if !given.is_empty() => {
                            let given = percent_decode_str(given).decode_utf8().ok()?;
                            parameters.insert(name, given.into_owned());
                        }
                        None if wanted == given => {}
                        _ => return None,
                    }
                }
                _ => return None,
            }
        }
    }

    /// Of two routes for the same path the one with fewer names in braces is meant.
    fn names(&self) -> usize {
        self.path.matches('{').count()
    }
}

static TABLE: LazyLock<Vec<PageRoute>> = LazyLock::new(|| {
    let mut routes = super::pages::routes();
    routes.sort_by_key(PageRoute::names);
    routes
});

/// What the table says of a request.
pub(crate) enum Found {
    Route(&'static PageRoute, BTreeMap<&'static str, String>),
    WrongMethod,
    Nothing,
}

pub(crate) fn find(method: &Method, path: &str) -> Found {
    let wanted = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut is_known = false;
    for route in &*TABLE {
        if let Some(parameters) = route.matches(path) {
            if route.method() == wanted {
                return Found::Route(route, parameters);
            }
            is_known = true;
        }
    }
    if is_known { Found::WrongMethod } else { Found::Nothing }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &Method, path: &str) -> Option<(&'static str, BTreeMap<&'static str, String>)> {
        match find(method, path) {
            Found::Route(route, parameters) => Some((route.path, parameters)),
            Found::WrongMethod | Found::Nothing => None,
        }
    }

    #[test]
    fn a_path_finds_its_route_with_what_stands_in_it() {
        let (path, parameters) = found(&Method::GET, "/dashboard/apps/a%2Fb").unwrap();
        assert_eq!((path, parameters["app"].as_str()), ("/dashboard/apps/{app}", "a/b"));
        assert_eq!(found(&Method::HEAD, "/dashboard").unwrap().0, "/dashboard");
        assert!(found(&Method::GET, "/dashboard/apps/%ff").is_none(), "no text");
        assert!(found(&Method::GET, "/dashboard/apps/").is_none());
        assert!(matches!(find(&Method::GET, "/dashboard/logout"), Found::WrongMethod));
        assert!(matches!(find(&Method::DELETE, "/dashboard"), Found::WrongMethod));
        assert!(matches!(find(&Method::GET, "/dashboard/nothing"), Found::Nothing));
    }

    #[test]
    fn each_path_is_declared_once_for_a_method_and_below_the_root() {
        let routes = super::super::pages::routes();
        for (index, route) in routes.iter().enumerate() {
            assert!(route.path.starts_with(super::super::ROOT), "{}", route.path);
            let again = routes[..index]
                .iter()
                .any(|other| other.method() == route.method() && other.path == route.path);
            assert!(!again, "{}", route.path);
        }
    }
}
