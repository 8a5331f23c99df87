//! The capabilities of a portal token.

/// By the API's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capability {
    ViewBase,
    ViewEndpointSecret,
    ManageEndpointSecret,
    ManageTransformations,
    CreateAttempts,
    ManageEndpoint,
}

impl Capability {
    pub(crate) const ALL: [Self; 6] = [
        Self::ViewBase,
        Self::ViewEndpointSecret,
        Self::ManageEndpointSecret,
        Self::ManageTransformations,
        Self::CreateAttempts,
        Self::ManageEndpoint,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::ViewBase => "ViewBase",
            Self::ViewEndpointSecret => "ViewEndpointSecret",
            Self::ManageEndpointSecret => "ManageEndpointSecret",
            Self::ManageTransformations => "ManageTransformations",
            Self::CreateAttempts => "CreateAttempts",
            Self::ManageEndpoint => "ManageEndpoint",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|capability| capability.name() == name)
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Capabilities(u8);

impl Capabilities {
    pub(crate) fn all() -> Self {
        Capability::ALL.into_iter().collect()
    }

    pub(crate) fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    pub(crate) fn names(self) -> Vec<&'static str> {
        Capability::ALL.into_iter().filter(|capability| self.has(*capability)).map(Capability::name).collect()
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        Self(capabilities.into_iter().fold(0, |set, capability| set | 1 << capability as u8))
    }
}
