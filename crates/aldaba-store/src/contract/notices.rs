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

impl Notice {
    /// How many of one organization wait at most. What comes while so many wait is left out and counted, and as
    /// soon as there is room again one notice stands in its place.
    pub const MAX_PENDING: u32 = 10_000;
    /// The event type of the notice that says how many were left out.
    pub const LEFT_OUT: &str = "operational.left_out";

    pub fn left_out(org: OrgId, count: u32) -> Self {
        Self { org, event: Self::LEFT_OUT.into(), body: format!(r#"{{"count":{count}}}"#) }
    }
}

/// The place of a notice in the order of commits. A number is never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NoticeNumber(pub i64);
