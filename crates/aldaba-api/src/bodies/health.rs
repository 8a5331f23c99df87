//! How the server is.

#[cfg(feature = "server")]
use crate::read::text;
use crate::{Timestamp, response, words};

words! {
    /// How a part of the server is.
    PartStatus {
        /// It works.
        Fine = "ok",
        /// It does not.
        Error = "error",
    }
}

response! {
    /// How the server is.
    Health "HealthReport" of HealthView {
        /// The store.
        required database: PartHealth;
        /// What delivers.
        required queue: PartHealth;
        /// What is kept in memory.
        required cache: PartHealth;
        /// What runs beside requests.
        required background: BackgroundHealth;
        /// What the server thinks of the machine's clock.
        nullable clock: ClockHealth;
        /// Tokens and keys that are in use and expire soon.
        required tokens: TokensHealth;
        /// Whether anything is sent.
        required delivering: DeliveringHealth;
    }
}

words! {
    /// Whether anything is sent.
    DeliveringStatus {
        /// What is due is sent.
        Fine = "ok",
        /// The data was restored from a backup: nothing is sent until the operator resumes.
        Paused = "paused",
    }
}

response! {
    /// Whether anything is sent.
    DeliveringHealth "DeliveringHealth" of DeliveringHealthView {
        /// `ok`, or `paused`: the data was restored from a backup, and nothing is sent until the operator resumes.
        required status: DeliveringStatus = text();
        /// When that backup was made.
        nullable backup_made_at: Timestamp = text().shown("date-time");
    }
}

response! {
    /// How a part of it is.
    PartHealth "PartHealth" of PartHealthView {
        /// `ok` or `error`.
        required status: PartStatus = text();
    }
}

response! {
    /// How the tasks are that run beside requests.
    BackgroundHealth "BackgroundHealth" of BackgroundHealthView {
        /// `ok`, or `error` while tasks are listed.
        required status: PartStatus = text();
        /// Tasks that panicked, were restarted, and have not run well for long enough since then.
        required restarting: Vec<RestartingTask>;
    }
}

response! {
    /// A task that was restarted.
    RestartingTask "RestartingTask" of RestartingTaskView {
        /// Its name.
        required name: String;
        /// How often it was restarted since it last ran well.
        required restarts: u64;
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

response! {
    /// The clock of the server's machine.
    ClockHealth "ClockHealth" of ClockHealthView {
        /// `ok` or `not_trusted`: the clock is more than a day ahead or an hour behind, so that nothing is removed and nothing
        /// ends by time.
        required status: ClockStatus = text();
        /// What it shows.
        required shown: String;
        /// What it was expected to show, as far as is known.
        required expected: String;
        /// How long it must still run steadily to be trusted. 0: it is trusted.
        required trusted_in_seconds: u64;
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

response! {
    /// Tokens and keys that are in use and expire soon.
    TokensHealth "TokensHealth" of TokensHealthView {
        /// `ok`, or `expiring` while there are any.
        required status: TokensStatus = text();
        /// How many API keys and organization tokens were used within the last day and expire within 30 days. Those issued for
        /// 30 days or less do not count. The log has their names.
        required expiring: u64;
        /// When the first of them expires.
        nullable first_expires_at: Timestamp = text().shown("date-time");
    }
}

response! {
    /// The server responds.
    Liveness "LivenessReport" of LivenessView {
        /// Always `ok`.
        required status: PartStatus = text();
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

response! {
    /// Whether the server is ready.
    Readiness "ReadinessReport" of ReadinessView {
        /// `ready`, or `not_ready` while a check is `failing`.
        required status: ReadyStatus = text();
        /// One for each thing that it needs.
        required checks: Vec<ReadinessCheck>;
    }
}

response! {
    /// A thing that the server needs.
    ReadinessCheck "ReadinessCheck" of ReadinessCheckView {
        /// `store`, `space`, `delivering`, `queue`, `background`, `clock`, or with TLS `certificate`.
        required name: String;
        /// `ok`; `warning`: messages are accepted, and an operator should look at it; `failing`: they are refused, or cannot be
        /// delivered.
        required state: CheckState = text();
        /// What is wrong.
        omitted detail: String;
        /// What to do about it.
        omitted action: String;
    }
}
