-- Keys that callers show. The key itself is not here, only its digest.
CREATE TABLE api_key (
    id           BLOB    NOT NULL PRIMARY KEY,
    org          BLOB    NOT NULL,
    -- NULL: for the whole organization.
    app          BLOB,
    name         TEXT    NOT NULL,
    prefix       TEXT    NOT NULL UNIQUE,
    digest       BLOB    NOT NULL UNIQUE,
    scope        INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    expires_at   INTEGER,
    last_used_at INTEGER
) WITHOUT ROWID;
-- Signed tokens that count no longer.
CREATE TABLE revoked_token (
    mark       BLOB NOT NULL PRIMARY KEY,
    org        BLOB NOT NULL,
    -- When it would have ended anyway. NULL: never.
    expires_at INTEGER
) WITHOUT ROWID;
CREATE INDEX revoked_token_end ON revoked_token (expires_at) WHERE expires_at IS NOT NULL;
-- The ends of portal tokens of an application, of all or of one session.
CREATE TABLE portal_cut (
    app           BLOB    NOT NULL,
    -- Empty: all.
    session       TEXT    NOT NULL,
    issued_before INTEGER NOT NULL,
    ends_at       INTEGER NOT NULL,
    expires_at    INTEGER,
    PRIMARY KEY (app, session, issued_before)
) WITHOUT ROWID;
CREATE INDEX portal_cut_end ON portal_cut (expires_at) WHERE expires_at IS NOT NULL;
