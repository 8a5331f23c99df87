//! Access to the portal of an application, and the identity of the caller.

use crate::api::applications::App;
use crate::call::Call;
use crate::{Client, Error};
use aldaba_api::{ExpireTokens, NewPortalAccess, PortalAccess, Whoami};

impl App {
    /// Lets somebody into its portal.
    pub async fn portal_access(&self, access: &NewPortalAccess) -> Result<PortalAccess, Error> {
        Call::post(&["auth", "app-portal-access", &self.id]).json(access).answer(&self.client).await
    }

    /// The same with nothing to choose, as older clients do.
    pub async fn dashboard_access(&self) -> Result<PortalAccess, Error> {
        Call::post(&["auth", "dashboard-access", &self.id]).answer(&self.client).await
    }

    /// Ends the portal tokens that it has.
    pub async fn expire_tokens(&self, which: &ExpireTokens) -> Result<(), Error> {
        Call::post(&["auth", "app", &self.id, "expire-all"]).json(which).done(&self.client).await
    }
}

impl Client {
    /// Who this client is.
    pub async fn whoami(&self) -> Result<Whoami, Error> {
        Call::get(&["auth", "whoami"]).answer(self).await
    }

    /// Ends the token of this client. Not tried again after an answer was lost: the token may have ended.
    pub async fn logout(&self) -> Result<(), Error> {
        Call::post(&["auth", "logout"]).only_once().done(self).await
    }
}
