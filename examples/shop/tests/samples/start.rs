//! With which settings a sample does not run at all.

use crate::world::World;
use shop::Running;
use std::sync::Arc;

/// The libraries take an empty key without a word, and leave out what is no base64.
pub(crate) async fn a_secret_with_which_anybody_could_sign_is_refused_at_the_start(world: Arc<World>) {
    for secret in ["", "whsec_", "whsec_====", "whsec_%%%%", "whsec_ññññ"] {
        let said = refuse(&world, "WEBHOOK_SECRET", secret).await;
        assert!(secret.len() < 7 || !said.contains(secret), "it shows the secret:\n{said}");
    }
}

/// To PostgreSQL a wait of 0 means for ever.
pub(crate) async fn an_invalid_wait_timeout_is_refused_at_the_start(world: Arc<World>) {
    for wait_timeout in ["0", "-1", "soon"] {
        refuse(&world, "WAIT_TIMEOUT_SECONDS", wait_timeout).await;
    }
}

/// What it says of the setting with which it does not run.
async fn refuse(world: &World, name: &'static str, value: &str) -> String {
    let settings = world.settings().with(name, value);
    let said = Running::refuse(world.sample, world.signing, settings, world.stage.folder.path()).await;
    assert!(said.contains(name), "{} with {name}={value:?} does not say why:\n{said}", world.sample.name());
    said
}
