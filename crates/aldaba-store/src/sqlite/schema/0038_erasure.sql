-- Erasures of applications, running and ended. What they have removed is counted here; nothing of its content is.
CREATE TABLE erasure (
    id         BLOB PRIMARY KEY,
    org        BLOB NOT NULL,
    app        BLOB NOT NULL,
    state      INTEGER NOT NULL,
    messages   INTEGER NOT NULL,
    deliveries INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    endpoints  INTEGER NOT NULL,
    others     INTEGER NOT NULL,
    audit      INTEGER NOT NULL,
    first      BLOB,
    reached    BLOB,
    audited    BLOB,
    entry      BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX erasure_org ON erasure (org, id);
CREATE INDEX erasure_running ON erasure (app, id) WHERE state = 0;
CREATE INDEX erasure_ended ON erasure (updated_at, id) WHERE state > 0;

-- All replays of an application.
CREATE INDEX replay_of_application ON replay (app, id);

-- All mails of an application.
CREATE INDEX mail_of_application ON mail (app);
