//! Planted bugs, which show that the checks can fail.

use aldaba_store::sqlite::Planted;

/// What is broken on purpose. Each is caught by the check that is named with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The client hears of a commit before it is on disk: I1.
    AckBeforeCommit,
    /// A result is confirmed and never written: I1 or I5.
    LoseRecord,
    /// The result of a manual attempt is confirmed and never written.
    LoseManual,
    /// A crash leaves the first half of a batch on disk: I1.
    TearCommit,
    /// An idempotency key or an event id is not looked up: I2.
    ForgetKeys,
    /// Fan-out is not checked against the configuration's version: I1.
    AcceptStale,
    /// A lane's read names deliveries that have ended: I3 or I5.
    RaiseTheDead,
    /// A lane's read leaves a waiting delivery out: I1.
    HideRow,
    /// The engine does not find what waits past its stop date: the stop date.
    HideStopDates,
    /// The due time of a retry is lost: the schedule.
    ForgetDue,
    /// One attempt leaves as two requests: I5.
    SendTwice,
    /// A failed attempt is repeated inside the transport: I4.
    RetryInside,
    /// The body that goes out is not the one that was signed.
    ChangeBody,
    /// The engine is not told of `Retry-After`: I9.
    HideRetryAfter,
    /// The engine is not told of throttle rates: I9.
    HideThrottle,
    /// The engine may send more at once to an endpoint than was configured: I9.
    WidenLanes,
    /// The same for an origin: origin.
    WidenOrigins,
    /// A refused result is reported as written: I6.
    HideRefusal,
    /// The engine is not told that an endpoint was deleted.
    HideDelete,
    /// The engine is not told that an endpoint was turned off.
    HideDisabled,
    /// A new life is not told of the gates that are held.
    ForgetGates,
    /// The engine is told that all endpoints are one organization's: tenancy.
    MixOrganizations,
    /// The engine is not told that an endpoint is an ordered one: I8.
    HideOrdering,
    /// The engine is told that an ordered endpoint skips what it should stop at: I8.
    HideBlock,
    /// What was to be delivered later takes the place that it would have had at once: I8.
    JumpQueue,
    /// What was to be delivered later is stored as due at once.
    ForgetDelay,
    /// The engine is told that everything settled is too old to be kept: retention.
    RemoveEarly,
    /// Payloads whose time has come are removed though something waits for them: I1.
    RemovePayloads,
    /// A payload that was deleted can be read all the same: expunge.
    KeepDeleted,
    /// The engine is told of every answer as of a success: what is delivered must have arrived.
    PretendSuccess,
    /// A source's sender hears 200 before the commit: taken.
    AnswerFirst,
    /// Event ids are looked up before the commit, not in it: once.
    LookThenStore,
    /// Ids of events are forgotten with their messages, though a source is to remember them: once.
    ForgetWindow,
    /// What a source receives is stored without the spaces at its ends: bytes.
    TidyBody,
    /// Another sender's headers go out with an event of a source: bytes.
    MixHeaders,
    /// A source takes what it could not verify: refused.
    TakeForged,
    /// Another body under the id of a former event is called a repeat: answer.
    HideConflict,
    /// A repeat of an event that has failed is taken for a duplicate: reopened.
    ForgetFailed,
    /// The engine is not told what the clock has shown before: clock.
    ForgetClock,
    /// A key that has expired, by the clock, is taken again: I2.
    ExpireKeys,
    /// The engine is not told of deliveries that are due too far ahead: waits.
    HideNotDue,
    /// A failed manual attempt writes the due time back that was read before it: due.
    RestoreDue,
    /// A due time is corrected to a day later than the engine has said: due.
    CorrectLate,
    /// An end of tokens at once is stored as one that is to come: tokens.
    DelayCuts,
    /// A new life is not told of tokens that were ended one by one: tokens.
    ForgetRevocations,
    /// An update of an endpoint's health has lost its condition: health.
    ForgetCondition,
    /// A lane's read skips a row where the page before has ended: I1.
    SkipAtCursor,
    /// News of one application comes out of the order of its commits: I5.
    MixNews,
    /// Attempts are not added to the counters of their minute: counters.
    LoseCounts,
    /// An erasure leaves event ids behind: erasure.
    KeepEventIds,
    /// An erasure removes the deliveries of others, too: erasure.
    EraseOthers,
    /// Messages of a later commit are not added to the count of their day: quotas.
    LoseQuotas,
    /// What a later commit counts as delivered is not added to the minute of the organization: organizations.
    LoseOrganizationCounts,
}

impl Sabotage {
    /// Those that are in the SQL of the store: by what a statement is known, what stands there, and what is planted in its place.
    pub fn in_statements(self) -> &'static [Planted] {
        match self {
            Self::ForgetKeys => &[(
                FIND_KEY,
                KEY,
                "key = ?3 AND NOT EXISTS (SELECT 1 FROM message WHERE app = owner AND id = resource)",
            )],
            Self::ForgetWindow => &[(
                FIND_KEY,
                KEY,
                "key = ?3 AND (kind <> 0 OR EXISTS (SELECT 1 FROM message WHERE app = owner AND id = resource))",
            )],
            Self::LookThenStore => &[(FIND_KEY, KEY, "key = ?3 AND kind <> 0")],
            Self::KeepEventIds => &[(
                "SELECT kind, key FROM unique_key WHERE owner = ?1",
                "owner = ?1",
                "owner = ?1 AND kind <> 0",
            )],
            Self::EraseOthers => &[(
                "SELECT seq FROM delivery WHERE message = ?1 ORDER BY seq LIMIT ?2",
                "message = ?1",
                "(message = ?1 OR state = 1)",
            )],
            Self::ForgetDue => &[(
                ANY,
                "retries = retries + ?3, due_at = ?4",
                "retries = retries + ?3, due_at = min(due_at, ?4)",
            )],
            Self::ForgetGates => &[(ANY, "FROM gate ORDER BY", "FROM gate WHERE 0 ORDER BY")],
            Self::JumpQueue => {
                &[(ANY, "SET ordered = 1, place = ?2", "SET ordered = 1, place = min(seq, ?2)")]
            }
            Self::RemoveEarly => {
                &[(ANY, "settled_at <= ?2 AND (settled_at < ?2 OR seq < ?3)", "(?2 = ?2 OR ?3 = ?3)")]
            }
            Self::RemovePayloads => &[
                (ANY, "AND NOT EXISTS (SELECT 1 FROM delivery WHERE message = ?2 AND state = 0)", ""),
                (
                    ANY,
                    "FROM delivery WHERE message = ?1 AND state = 0 LIMIT 1",
                    "FROM delivery WHERE message = ?1 AND 0",
                ),
            ],
            Self::KeepDeleted => &[(
                ANY,
                "SET payload = ?3, sealed_headers = NULL, expunged = 1",
                "SET payload = coalesce(payload, ?3), expunged = 0",
            )],
            Self::ForgetClock => &[
                (ANY, "FROM setting WHERE name = ?1", "FROM setting WHERE name = ?1 AND name <> 'clock'"),
                ("SELECT created_at FROM message ORDER BY rowid", "ORDER BY", "WHERE 0 ORDER BY"),
                ("SELECT started_at FROM attempt ORDER BY rowid", "ORDER BY", "WHERE 0 ORDER BY"),
            ],
            Self::DelayCuts => {
                &[("FROM portal_cut ORDER BY", "ends_at, expires_at", "ends_at + 1, expires_at")]
            }
            Self::ForgetRevocations => {
                &[(ANY, "FROM revoked_token ORDER BY", "FROM revoked_token WHERE 0 ORDER BY")]
            }
            Self::ForgetCondition => {
                &[(ANY, "health_epoch = ?10 WHERE id = ?11", "health_epoch = ?10 WHERE id = id OR id = ?11")]
            }
            Self::SkipAtCursor => &[(ANY, "due_at = ?2 AND seq > ?3", "due_at = ?2 AND seq > ?3 + 1")],
            Self::LoseCounts => &[(
                ANY,
                "attempts = endpoint_minute.attempts + excluded.attempts",
                "attempts = endpoint_minute.attempts",
            )],
            Self::LoseQuotas => {
                &[(ANY, "count = message_count.count + excluded.count", "count = message_count.count")]
            }
            Self::LoseOrganizationCounts => &[(
                "INSERT INTO organization_minute",
                " delivered = organization_minute.delivered + excluded.delivered",
                " delivered = organization_minute.delivered",
            )],
            // Beyond a cursor only, or a lane would read the same rows again and again.
            Self::RaiseTheDead => &[(DUE, "state = 0", "(state = 0 OR state = 1 AND ?2 > 0)")],
            Self::HideRow => &[(DUE, "state = 0", "state = 0 AND seq % 5 <> 0")],
            Self::HideStopDates => &[
                (DUE, ", clock_start,", ", clock_start + 1000000000000,"),
                ("clock_start > ?2", "state = 0", "state = 0 AND 0"),
            ],
            Self::HideNotDue => &[(
                "SELECT due_at, seq, endpoint FROM delivery WHERE state = 0 AND due_at = ?1",
                "state = 0",
                "state = 0 AND 0",
            )],
            Self::HideThrottle => &[
                (TARGET, "throttle_rate", "NULL"),
                ("SELECT throttle_rate FROM application WHERE id = ?1", "throttle_rate", "NULL"),
            ],
            Self::HideDelete => &[(TARGET, "THEN 1 ELSE 0 END", "THEN 0 ELSE 0 END")],
            Self::HideDisabled => &[(TARGET, ", disabled,", ", 0,")],
            Self::HideOrdering => &[(TARGET, ", ordering,", ", 0,")],
            Self::HideBlock => &[(TARGET, ", ordering,", ", min(ordering, 1),")],
            Self::MixOrganizations => &[(TARGET, ", org,", ", x'0101010101010101010101010101010101010101',")],
            _ => &[],
        }
    }
}

/// Whatever the statement is.
const ANY: &str = "";
const FIND_KEY: &str = "SELECT resource FROM unique_key WHERE owner = ?1 AND kind = ?2 AND key = ?3";
const KEY: &str = "key = ?3";
/// What a lane reads of its backlog, and of its endpoint.
const DUE: &str = "WHERE state = 0 AND endpoint = ?1 AND due_at = ?2 AND seq > ?3";
const TARGET: &str = "FROM endpoint WHERE endpoint.id = ?1";
