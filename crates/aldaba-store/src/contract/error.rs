/// Why the store could not do what was asked, sorted by who must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The caller should come back later: too much is waiting to be written.
    #[error("the store is busy: too much is waiting to be written")]
    Busy,
    /// The database is out of reach for the moment: the caller should come back, and need not ask an operator. Nothing of the
    /// write was kept.
    #[error("the database is out of reach: {0}")]
    Unavailable(String),
    /// The operator must make room. Nothing of the write was kept.
    #[error("the disk is full: free some space, writing goes on by itself")]
    Full,
    /// The server is stopping.
    #[error("the store is closed")]
    Closed,
    /// A read took longer than the store allows.
    #[error("the read took too long")]
    Timeout,
    /// The database refuses a value of this operation, for good. Nothing of it was kept, and others are not concerned.
    #[error("the store refuses it: {0}")]
    Refused(String),
    /// The operator must look at the disk or the database. Nothing more can be written safely.
    #[error("the store has failed: {0}")]
    Failed(String),
}
