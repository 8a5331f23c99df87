//! Keys and ended tokens.

use crate::sqlite::{SqliteStore, credentials};
use crate::{ApiKey, Credentials, PortalCut, Read, RevokedToken};

impl Credentials for SqliteStore {
    fn api_keys(&self) -> Read<Vec<ApiKey>> {
        self.read(credentials::all)
    }

    fn revoked_tokens(&self) -> Read<Vec<RevokedToken>> {
        self.read(credentials::revoked)
    }

    fn portal_cuts(&self) -> Read<Vec<PortalCut>> {
        self.read(credentials::cuts)
    }
}
