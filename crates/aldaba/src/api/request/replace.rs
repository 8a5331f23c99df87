//! PUT and PATCH: a change that conflicts with a concurrent one is made again, on what is there by then.

use crate::api::response::conflict::Subject;
use crate::api::{Api, Error};
use crate::token::Caller;
use aldaba_engine::ChangeError;
use http::StatusCode;

/// A request that changes a thing, or makes it.
pub(crate) trait Replace: Sync {
    /// The thing.
    type Current: Send + Sync;
    /// What the request makes of it.
    type New: Send + Sync;

    fn caller(&self) -> &Caller;

    /// How the path names the thing.
    fn key(&self) -> &str;

    /// The thing, if it is there. An error, where the request can only change it.
    fn find(&self) -> impl Future<Output = Result<Option<Self::Current>, Error>> + Send;

    /// Whether the request may make what is not there.
    fn may_be_made(&self) -> Result<(), Error>;

    /// What the thing is to be.
    fn wanted(&self, current: Option<&Self::Current>) -> Result<Self::New, Error>;

    fn create(&self, new: Self::New) -> impl Future<Output = Result<Self::Current, ChangeError>> + Send;

    fn update(
        &self,
        current: &Self::Current,
        new: Self::New,
    ) -> impl Future<Output = Result<Self::Current, ChangeError>> + Send;

    /// The uid that the thing is to have.
    fn uid(new: &Self::New) -> Option<String>;

    /// What a refusal is about.
    fn subject(&self, current: Option<&Self::Current>) -> Subject;
}

/// The uid that a PUT gives. The name in the path is it where the body has none, or null, and nothing else has that name:
/// otherwise the same request would create another thing next time. `current`: the uid of the thing that is there.
pub(crate) fn uid_of_put(given: Option<String>, key: &str, current: Option<Option<&str>>) -> Option<String> {
    let is_key = current.is_none_or(|uid| uid == Some(key));
    given.or_else(|| is_key.then(|| key.to_owned()))
}

/// Changes the thing, or makes it.
pub(crate) async fn replace<R: Replace>(api: &Api, request: &R) -> Result<(StatusCode, R::Current), Error> {
    let mut retry = api.engine.directory().conflict_retry();
    loop {
        let current = request.find().await?;
        if current.is_none() {
            // Asked each time: another request may just have deleted it.
            request.may_be_made()?;
        }
        let new = request.wanted(current.as_ref())?;
        let uid = R::uid(&new);
        let (status, changed) = match &current {
            Some(current) => (StatusCode::OK, request.update(current, new).await),
            None => (StatusCode::CREATED, request.create(new).await),
        };
        match changed {
            Ok(changed) => return Ok((status, changed)),
            Err(ChangeError::Unsettled) if current.is_some() => retry.wait().await?,
            // Another request has just made it: this one changes it.
            Err(ChangeError::UidTaken) if current.is_none() && uid.as_deref() == Some(request.key()) => {
                retry.wait().await?;
            }
            Err(error) => {
                return Err(api
                    .refusal(request.caller(), error, request.subject(current.as_ref()), uid)
                    .await);
            }
        }
    }
}
