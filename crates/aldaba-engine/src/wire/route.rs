use super::redirect::Hop;
use super::target::WireTarget;
use super::tls::Fingerprint;
use aldaba_delivery::Origin;

/// Identifies requests that may share connections: same origin, same client certificate (or none), same
/// preference for HTTP/2.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    origin: Origin,
    identity: Option<Fingerprint>,
    pub(super) http2: bool,
}

impl Route {
    pub(super) fn of(hop: &Hop, target: &WireTarget<'_>) -> Self {
        let identity = hop.identity.as_ref().filter(|_| target.secure).map(|identity| identity.chain());
        Self { origin: target.origin.clone(), identity, http2: hop.http2 && target.secure }
    }
}
