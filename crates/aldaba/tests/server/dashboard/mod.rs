//! Pages for people, as requests of a browser.

mod browser;
mod live;
mod posts;
mod session;
mod wrong_urls;
