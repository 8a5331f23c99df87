-- Inbound doors. Each owns an application, which is made with it and goes with it.
CREATE TABLE source (
    id         BLOB    NOT NULL PRIMARY KEY,
    org        BLOB    NOT NULL,
    app        BLOB    NOT NULL UNIQUE,
    uid        TEXT,
    name       TEXT    NOT NULL,
    kind       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    metadata   TEXT    NOT NULL,
    settings   TEXT    NOT NULL,
    sealed     BLOB    NOT NULL
);
CREATE UNIQUE INDEX source_uid ON source (org, uid) WHERE uid IS NOT NULL;
CREATE INDEX source_org ON source (org, id);
-- What sources are found by: the token itself is not here, only its digest. The newest of a source has the highest
-- number, and no end.
CREATE TABLE source_token (
    digest     BLOB    NOT NULL PRIMARY KEY,
    source     BLOB    NOT NULL,
    number     INTEGER NOT NULL,
    expires_at INTEGER
) WITHOUT ROWID;
CREATE INDEX source_token_source ON source_token (source, number);

-- An event id that came in through a source is remembered until this moment at least, though its message may be gone.
ALTER TABLE unique_key ADD COLUMN at_least INTEGER;
