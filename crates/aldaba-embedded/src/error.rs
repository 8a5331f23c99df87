use aldaba_delivery::MessageId;
use aldaba_engine::wire::UrlError;
use aldaba_engine::{
    ChangeError, CheckError, DispatchError, FolderError, PayloadError, ResendError, SendError, SetupError,
};
use aldaba_store::{Error as StoreError, OpenError, OrderingObstacle};
use std::io;
use std::path::PathBuf;

/// The underlying error.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Why an engine does not start. Everything that was opened is closed again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The builder has no data folder.
    #[error("no data folder was given: call `sqlite` with its path before `start`")]
    NoFolder,
    /// Another engine or server uses the folder.
    #[error(
        "the data folder {} is in use by another engine, of this program or another, or by a server: stop that \
         one first, or give this one a folder of its own",
        folder.display()
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder was created with another key.
    #[error(
        "the data folder was written with another encryption key: give that one with `encryption_key`, or put \
         the folder's own file `encryption.key` back"
    )]
    OtherKey,
    /// An option of the builder is invalid.
    #[error("{option}: {why}")]
    Option {
        /// The method of the builder.
        option: &'static str,
        /// The problem.
        why: String,
    },
    /// The folder or its key cannot be created or read.
    #[error(transparent)]
    Folder(Cause),
    /// The database cannot be opened.
    #[error(transparent)]
    Store(Cause),
    /// Deliveries are impossible: no certificates, or no name resolution.
    #[error(transparent)]
    Network(Cause),
    /// The content of the database cannot be read.
    #[error("the engine cannot start: {0}")]
    Engine(#[source] Cause),
    /// The operating system refuses threads.
    #[error("the engine's threads cannot be started: {0}")]
    Threads(io::Error),
}

/// Why a call failed. Unless documented otherwise, nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The input is invalid.
    #[error("{field}: {why}")]
    Invalid {
        /// The invalid field.
        field: &'static str,
        /// The problem.
        why: String,
    },
    /// An application, message or endpoint does not exist.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The name is taken: names are unique, of applications in the folder and of endpoints in their application.
    #[error("another one has this uid: choose another")]
    UidTaken,
    /// The event id was accepted before; this is its message.
    #[error("the application has already sent {0} with this event id")]
    EventIdTaken(MessageId),
    /// The present state does not allow the call.
    #[error("{0}")]
    Conflict(String),
    /// A limit of the number of resources is reached.
    #[error("{0}")]
    TooMany(String),
    /// The disk cannot keep up.
    #[error("too much waits to be written or read: try again in a moment")]
    Busy,
    /// Less disk space is free than [`Builder::low_space`](crate::Builder::low_space), or none.
    #[error("the disk is full: free some space, accepting goes on by itself")]
    Full,
    /// The engine was stopped by [`Aldaba::shutdown`](crate::Aldaba::shutdown), through this handle or another.
    #[error("the engine has been shut down")]
    Stopped,
    /// The engine has failed. Only a new start reads the disk again.
    #[error("the store has failed: {0}. Check the disk, then start again")]
    Failed(String),
}

impl Error {
    /// Whether the same call may succeed a moment later.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Busy | Self::Full)
    }

    fn unknown_policy(error: &dyn std::error::Error) -> Self {
        let why = format!("{error}: name a built-in one, or give the builder your own (`Builder::policy`)");
        Self::Invalid { field: "policy", why }
    }

    pub(crate) fn invalid(field: &'static str) -> impl Fn(String) -> Self {
        move |why| Self::Invalid { field, why }
    }
}

impl StartError {
    pub(crate) fn option(option: &'static str, why: impl Into<String>) -> Self {
        Self::Option { option, why: why.into() }
    }
}

impl From<SetupError> for StartError {
    fn from(error: SetupError) -> Self {
        use aldaba_engine::StartError as Engine;
        match error {
            SetupError::Policy(error) => Self::option("overrides", error.to_string()),
            SetupError::Store(OpenError::Locked { folder }) => Self::InUse { folder },
            SetupError::Store(error @ OpenError::Folder { .. }) => Self::Folder(error.into()),
            SetupError::Store(error) => Self::Store(error.into()),
            SetupError::Wire(error) => Self::Network(error.into()),
            SetupError::Folder(FolderError::KeyMissing { .. }) | SetupError::Engine(Engine::OtherKey) => {
                Self::OtherKey
            }
            SetupError::Folder(error) => Self::Folder(error.into()),
            SetupError::Engine(error) => Self::Engine(error.into()),
        }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Busy | StoreError::Timeout | StoreError::Unavailable(_) => Self::Busy,
            StoreError::Full => Self::Full,
            StoreError::Closed => Self::Stopped,
            StoreError::Refused(why) | StoreError::Failed(why) => Self::Failed(why),
        }
    }
}

impl From<UrlError> for Error {
    fn from(refused: UrlError) -> Self {
        let why = match refused {
            // The engine's text is for operators of a server.
            UrlError::Forbidden => {
                "leads to a private, local or reserved address: give a public one, or let \
                                      the builder `allow` its network"
                    .to_owned()
            }
            other => other.to_string(),
        };
        Self::Invalid { field: "url", why }
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::NotFound => Self::NotFound("application"),
            SendError::EventIdTaken(message) => Self::EventIdTaken(message),
            SendError::TooFarAhead => Self::Invalid { field: "deliver_at", why: error.to_string() },
            SendError::Unfit(unfit) => Self::Invalid { field: "payload", why: why_unfit(unfit) },
            SendError::UnknownPolicy(_) => Self::unknown_policy(&error),
            SendError::UnknownProfile(_) => Self::Invalid { field: "profile", why: error.to_string() },
            SendError::Unsettled | SendError::OfSource(_) | SendError::Late => {
                Self::Conflict(error.to_string())
            }
            SendError::OverQuota { .. } => Self::TooMany(error.to_string()),
            SendError::Store(error) => error.into(),
        }
    }
}

impl From<DispatchError> for Error {
    fn from(error: DispatchError) -> Self {
        match error {
            DispatchError::UnknownPolicy(_) => Self::unknown_policy(&error),
            DispatchError::UnknownProfile(_) => Self::Invalid { field: "profile", why: error.to_string() },
            DispatchError::Send(error) => error.into(),
        }
    }
}

fn why_unfit(unfit: CheckError) -> String {
    match unfit {
        CheckError::Version { known } => {
            format!("its event type has no schema of this version; there are: {}", known.join(", "))
        }
        CheckError::Payload { misfit: PayloadError::Problems { problems, .. }, .. } => {
            let problem = |problem: &aldaba_engine::PayloadProblem| {
                format!("{}: {}", problem.path.join("."), problem.why)
            };
            let problems: Vec<_> = problems.iter().map(problem).collect();
            format!("does not fit the schema of its event type: {}", problems.join("; "))
        }
        CheckError::Unchecked => {
            "was not checked: the events before it took the time that there is; send it alone, or with fewer"
                .into()
        }
        CheckError::Payload { .. } => "does not fit the schema of its event type".into(),
        CheckError::Schema { why, .. } => format!("the schema of its event type cannot be used: {why}"),
    }
}

impl From<ChangeError> for Error {
    fn from(error: ChangeError) -> Self {
        match error {
            ChangeError::NotFound => Self::NotFound("application or endpoint"),
            ChangeError::UidTaken => Self::UidTaken,
            ChangeError::UnknownPolicy(_) => Self::unknown_policy(&error),
            ChangeError::UnknownProfile(_) => Self::Invalid { field: "profile", why: error.to_string() },
            ChangeError::FilterTooCostly { .. } | ChangeError::FiltersTooCostly { .. } => {
                Self::Invalid { field: "filter", why: error.to_string() }
            }
            ChangeError::TurnedOff => Self::Conflict(error.to_string()),
            ChangeError::NotOrderable(obstacle) => Self::Conflict(match obstacle {
                OrderingObstacle::TooManyPending => "too many deliveries wait to be put in order now".into(),
            }),
            ChangeError::TooMany
            | ChangeError::TooManyAddresses
            | ChangeError::TooManyReplays
            | ChangeError::TooManyErasures
            | ChangeError::TooManyKeys
            | ChangeError::TooManyApiKeys
            | ChangeError::TooManyRevocations(_)
            | ChangeError::TooManyEventTypes
            | ChangeError::TooManySources
            | ChangeError::TooManyTokens { .. }
            | ChangeError::SchemasTooLarge => Self::TooMany(error.to_string()),
            ChangeError::Unsettled
            | ChangeError::Repeated(_)
            | ChangeError::MadeAndGone(_)
            | ChangeError::OfSource(_)
            | ChangeError::InUse(_)
            | ChangeError::Vault(_) => Self::Conflict(error.to_string()),
            ChangeError::Store(error) => error.into(),
        }
    }
}

impl From<ResendError> for Error {
    fn from(error: ResendError) -> Self {
        match error {
            ResendError::NoEndpoint => Self::NotFound("endpoint"),
            ResendError::TooMany => Self::TooMany(error.to_string()),
            ResendError::Store(error) => error.into(),
            error => Self::Conflict(error.to_string()),
        }
    }
}
