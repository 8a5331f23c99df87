use aldaba_delivery::OrgId;

/// What an organization wants to hear of. It is kept with what it tells of, in the same commit, until it has been
/// accepted as a message for the organization's own endpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub org: OrgId,
    /// The event type, such as `endpoint.created`.
    pub event: String,
    /// A JSON object. The store never looks inside.
    pub body: String,
}

/// The place of a notice in the order of commits. A number is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoticeNumber(pub i64);
