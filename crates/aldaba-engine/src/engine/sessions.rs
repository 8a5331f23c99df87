//! What a browser keeps of a session, sealed.

use super::Engine;
use crate::{Entropy, VaultError};

impl Engine {
    /// Seals with a key that is derived from the one that seals secrets at rest.
    pub fn seal_session(&self, plain: &[u8], entropy: &dyn Entropy) -> Vec<u8> {
        self.vault().seal_session(plain, entropy)
    }

    pub fn open_session(&self, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        self.vault().open_session(sealed)
    }
}
