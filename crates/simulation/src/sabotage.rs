//! Planted bugs, which show that the checks can fail.

/// What is broken on purpose. Each is caught by the check that is named with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sabotage {
    /// The client hears of a commit before it is on disk: I1.
    AckBeforeCommit,
    /// A result is confirmed and never written: I1 or I5.
    LoseRecord,
    /// The result of an attempt by hand is confirmed and never written.
    LoseByHand,
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
    /// A failed attempt by hand writes the due time back that was read before it: due.
    RestoreDue,
    /// A due time is corrected to a day later than the engine has said: due.
    CorrectLate,
    /// An end of tokens at once is stored as one that is to come: tokens.
    DelayCuts,
    /// A new life is not told of tokens that were ended one by one: tokens.
    ForgetRevocations,
}
