//! Wire profiles: which headers a delivery goes out with, and how it is signed.

use crate::call::Call;
use crate::listing::Page;
use crate::{Client, Error};
use aldaba_api::{NewProfile, Profile};

/// The wire profiles.
#[derive(Clone, Debug)]
pub struct Profiles {
    client: Client,
}

impl Client {
    /// The wire profiles, built in and of your own.
    #[must_use]
    pub fn profiles(&self) -> Profiles {
        Profiles { client: self.clone() }
    }
}

impl Profiles {
    /// All of them.
    pub async fn list(&self) -> Result<Vec<Profile>, Error> {
        let page: Page<Profile> = Call::get(&["profile"]).answer(&self.client).await?;
        Ok(page.data)
    }

    /// Makes one. Not tried again after an answer was lost: what it made would be in its own way.
    pub async fn create(&self, new: &NewProfile) -> Result<Profile, Error> {
        Call::post(&["profile"]).json(new).only_once().answer(&self.client).await
    }

    /// Shows one.
    pub async fn get(&self, name: &str) -> Result<Profile, Error> {
        Call::get(&["profile", name]).answer(&self.client).await
    }

    /// Makes one of your own what is given, or makes it.
    pub async fn update(&self, profile: &NewProfile) -> Result<Profile, Error> {
        Call::put(&["profile", &profile.name]).json(profile).answer(&self.client).await
    }

    /// Deletes one that no endpoint names.
    pub async fn delete(&self, name: &str) -> Result<(), Error> {
        Call::delete(&["profile", name]).done(&self.client).await
    }
}
