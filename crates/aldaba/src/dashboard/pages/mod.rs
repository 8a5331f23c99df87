//! The table of all pages, and a folder for each: its Rust file, its template, its texts. A page's folder has the name of its URL.

mod app;
mod apps;
mod dead_letter;
mod endpoint;
mod endpoint_form;
mod message;
mod overview;
mod search;

use super::route::PageRoute;
use super::{live, session, shell};

/// Every route of the dashboard.
pub(super) fn routes() -> Vec<PageRoute> {
    let routes = [
        session::routes(),
        shell::routes(),
        live::routes(),
        overview::routes(),
        search::routes(),
        apps::routes(),
        app::routes(),
        endpoint::routes(),
        endpoint_form::routes(),
        message::routes(),
        dead_letter::routes(),
    ];
    routes.into_iter().flatten().collect()
}
