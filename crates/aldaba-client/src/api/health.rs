//! How the server is.

use crate::call::Call;
use crate::{Client, Error};
use aldaba_api::{Timestamp, answer, words};
use http::StatusCode;

words! {
    /// How a part of the server is.
    PartStatus {
        /// It works.
        Fine = "ok",
        /// It does not.
        Error = "error",
    }
}

answer! {
    /// How the server is.
    Health {
        /// The store.
        database: PartHealth,
        /// What delivers.
        queue: PartHealth,
        /// What is kept in memory.
        cache: PartHealth,
        /// What runs beside requests. Older servers do not tell.
        background: Option<BackgroundHealth>,
        /// What the server thinks of its machine's clock; former versions do not say.
        clock: Option<ClockHealth>,
        /// Tokens and keys that are in use and expire soon; former versions do not say.
        tokens: Option<TokensHealth>,
    }
}

words! {
    /// Whether tokens expire soon.
    TokensStatus {
        /// None does.
        Fine = "ok",
        /// Some do.
        Expiring = "expiring",
    }
}

answer! {
    /// Tokens and keys that are in use and expire soon.
    TokensHealth {
        /// In a word.
        status: TokensStatus,
        /// How many were used within the last day and expire within 30 days.
        expiring: u64,
        /// When the first of them expires.
        first_expires_at: Option<Timestamp>,
    }
}

words! {
    /// What the server thinks of its machine's clock.
    ClockStatus {
        /// It is trusted.
        Trusted = "ok",
        /// It is more than a day ahead or an hour behind: nothing is removed and nothing ends by time.
        NotTrusted = "not_trusted",
    }
}

answer! {
    /// How the tasks are that run beside requests.
    BackgroundHealth {
        /// In a word.
        status: PartStatus,
        /// Those that panicked, were restarted, and have not run well for long enough since then.
        restarting: Vec<RestartingTask>,
    }
}

answer! {
    /// A task that was restarted.
    RestartingTask {
        /// Its name.
        name: String,
        /// How often it was restarted since it last ran well.
        restarts: u64,
    }
}

answer! {
    /// The clock of the server's machine.
    ClockHealth {
        /// In a word.
        status: ClockStatus,
        /// What it shows.
        shown: String,
        /// What it was expected to show, as far as is known.
        expected: String,
        /// How long it must still run steadily to be trusted.
        trusted_in_seconds: u64,
    }
}

answer! {
    /// How a part of it is.
    PartHealth {
        /// In a word.
        status: PartStatus,
    }
}

answer! {
    /// The server responds.
    Liveness {
        /// In a word.
        status: PartStatus,
    }
}

words! {
    /// Whether messages are accepted and delivered.
    ReadyStatus {
        /// They are.
        Ready = "ready",
        /// They are not.
        NotReady = "not_ready",
    }
}

words! {
    /// How a check has ended.
    CheckState {
        /// Well.
        Fine = "ok",
        /// An operator should look at it; messages are accepted and delivered meanwhile.
        Warning = "warning",
        /// Messages are refused, or not delivered.
        Failing = "failing",
    }
}

answer! {
    /// Whether the server is ready.
    Readiness {
        /// In a word.
        status: ReadyStatus,
        /// One for each thing that it needs.
        checks: Vec<ReadinessCheck>,
    }
}

answer! {
    /// A thing that the server needs.
    ReadinessCheck {
        /// Its name.
        name: String,
        /// How it is.
        state: CheckState,
        /// What is wrong.
        detail: Option<String>,
        /// What to do about it.
        action: Option<String>,
    }
}

impl Client {
    /// Whether the server responds at all.
    pub async fn live(&self) -> Result<Liveness, Error> {
        Call::get(&["health", "live"]).answer(self).await
    }

    /// Whether messages are accepted and delivered. Its status 503, while they are not, is an answer and no error.
    pub async fn ready(&self) -> Result<Readiness, Error> {
        Call::get(&["health", "ready"]).also(StatusCode::SERVICE_UNAVAILABLE).answer(self).await
    }

    /// How the server is.
    pub async fn health(&self) -> Result<Health, Error> {
        Call::get(&["health"]).answer(self).await
    }

    /// Whether it is there.
    pub async fn ping(&self) -> Result<(), Error> {
        Call::get(&["health", "ping"]).done(self).await
    }

    /// Does nothing. It exists for programs that were written for a server with a separate dead-letter queue.
    pub async fn redrive_dlq(&self) -> Result<(), Error> {
        Call::post(&["admin", "redrive-dlq"]).done(self).await
    }
}
