//! The OpenAPI document, the page that shows it, and the guides.

pub(crate) mod guides;
pub(crate) mod openapi;
pub(crate) mod pages;
