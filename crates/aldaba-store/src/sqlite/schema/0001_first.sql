-- Ids are the 20 bytes of the id, moments are milliseconds since the Unix epoch, spans are
-- nanoseconds. Lists of names are written as netstrings ("4:paid,"). Large columns come last, so
-- that a look at the others does not read them.

CREATE TABLE application (
    id            BLOB    NOT NULL PRIMARY KEY,
    org           BLOB    NOT NULL,
    -- Cleared when the application is deleted, so that the name can be used again.
    uid           TEXT,
    name          TEXT    NOT NULL,
    throttle_rate INTEGER,
    -- Raised by every change of the application or its endpoints.
    version       INTEGER NOT NULL,
    deleted       INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    metadata      TEXT    NOT NULL
);
CREATE UNIQUE INDEX application_uid ON application (org, uid) WHERE uid IS NOT NULL;
CREATE INDEX application_org ON application (org, id);

CREATE TABLE endpoint (
    id                   BLOB    NOT NULL PRIMARY KEY,
    app                  BLOB    NOT NULL,
    org                  BLOB    NOT NULL,
    uid                  TEXT,
    deleted              INTEGER NOT NULL DEFAULT 0,
    disabled             INTEGER NOT NULL,
    version              INTEGER NOT NULL,
    throttle_rate        INTEGER,
    created_at           INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    health_status        INTEGER NOT NULL,
    health_failure_count INTEGER NOT NULL,
    health_failing_since INTEGER,
    health_changed_at    INTEGER,
    health_next_probe_at INTEGER,
    health_probe_gap     INTEGER NOT NULL,
    health_quiet_until   INTEGER,
    policy               TEXT    NOT NULL,
    profile              TEXT,
    url                  TEXT    NOT NULL,
    description          TEXT    NOT NULL,
    event_types          TEXT    NOT NULL,
    channels             TEXT    NOT NULL,
    metadata             TEXT    NOT NULL,
    sealed               BLOB    NOT NULL
);
CREATE UNIQUE INDEX endpoint_uid ON endpoint (app, uid) WHERE uid IS NOT NULL;
CREATE INDEX endpoint_app ON endpoint (app, id) WHERE deleted = 0;

CREATE TABLE message (
    app        BLOB    NOT NULL,
    id         BLOB    NOT NULL,
    created_at INTEGER NOT NULL,
    event_type TEXT    NOT NULL,
    channels   TEXT    NOT NULL,
    event_id   TEXT,
    payload    BLOB    NOT NULL
);
CREATE UNIQUE INDEX message_app ON message (app, id);

-- What must not happen twice: an event id (kind 0) or an idempotency key (kind 1) of an
-- application or an organization, and what it led to the first time.
CREATE TABLE unique_key (
    owner      BLOB    NOT NULL,
    kind       INTEGER NOT NULL,
    key        BLOB    NOT NULL,
    resource   BLOB    NOT NULL,
    -- NULL: as long as the resource is kept.
    expires_at INTEGER,
    PRIMARY KEY (owner, kind, key)
) WITHOUT ROWID;

-- State 0 is waiting; 1 is delivered, 2 is dead. AUTOINCREMENT, because a number must never be
-- given twice, not even after the newest row is gone.
CREATE TABLE delivery (
    seq         INTEGER PRIMARY KEY AUTOINCREMENT,
    endpoint    BLOB    NOT NULL,
    message     BLOB    NOT NULL,
    state       INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER NOT NULL,
    attempts    INTEGER NOT NULL DEFAULT 0,
    clock_start INTEGER NOT NULL,
    settled_at  INTEGER,
    reason      INTEGER
);
-- Refills one lane. Every index ends with the number of its row, which is `seq`.
CREATE INDEX delivery_lane ON delivery (endpoint, due_at) WHERE state = 0;
-- Finds lanes with work; it holds all that the walk needs, in its order.
CREATE INDEX delivery_due ON delivery (due_at, seq, endpoint) WHERE state = 0;
CREATE INDEX delivery_message ON delivery (message);

CREATE TABLE attempt (
    id          BLOB    NOT NULL,
    seq         INTEGER NOT NULL,
    endpoint    BLOB    NOT NULL,
    message     BLOB    NOT NULL,
    started_at  INTEGER NOT NULL,
    duration    INTEGER NOT NULL,
    status_code INTEGER,
    failure     INTEGER,
    made_by     INTEGER NOT NULL,
    success     INTEGER NOT NULL,
    error       TEXT    NOT NULL,
    response    BLOB    NOT NULL
);
CREATE UNIQUE INDEX attempt_endpoint ON attempt (endpoint, id);
CREATE INDEX attempt_message ON attempt (message, id);

-- Counters of one endpoint and one minute; `minute` counts from the Unix epoch. The columns
-- `within_…` and `slower` are a histogram of how long attempts took, in milliseconds.
CREATE TABLE endpoint_minute (
    endpoint     BLOB    NOT NULL,
    minute       INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    successes    INTEGER NOT NULL,
    retries      INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    dead         INTEGER NOT NULL,
    within_5     INTEGER NOT NULL,
    within_10    INTEGER NOT NULL,
    within_25    INTEGER NOT NULL,
    within_50    INTEGER NOT NULL,
    within_100   INTEGER NOT NULL,
    within_250   INTEGER NOT NULL,
    within_500   INTEGER NOT NULL,
    within_1000  INTEGER NOT NULL,
    within_2500  INTEGER NOT NULL,
    within_5000  INTEGER NOT NULL,
    within_10000 INTEGER NOT NULL,
    within_30000 INTEGER NOT NULL,
    slower       INTEGER NOT NULL,
    PRIMARY KEY (endpoint, minute)
) WITHOUT ROWID;

-- Sums over a whole table, kept with every commit.
CREATE TABLE total (
    name  TEXT    NOT NULL PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO total (name, value) VALUES ('waiting', 0);

-- `scope` is the application's id, or empty for the host itself.
CREATE TABLE gate (
    origin     TEXT    NOT NULL,
    scope      BLOB    NOT NULL,
    failures   INTEGER NOT NULL,
    held_until INTEGER,
    hold       INTEGER NOT NULL,
    probing    INTEGER NOT NULL,
    PRIMARY KEY (origin, scope)
) WITHOUT ROWID;

CREATE TABLE setting (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;
