-- Who changed what. The time is in the id.
CREATE TABLE audit (
    id           BLOB    NOT NULL PRIMARY KEY,
    org          BLOB    NOT NULL,
    app          BLOB,
    endpoint     BLOB,
    actor_kind   INTEGER NOT NULL,
    -- A key's id, or the application of a portal token.
    actor_id     BLOB,
    -- A key's prefix.
    actor_prefix TEXT,
    -- A key's name, or the session of a portal token.
    actor_name   TEXT,
    action       TEXT    NOT NULL,
    resource     TEXT    NOT NULL,
    fields       TEXT    NOT NULL,
    count        INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_org ON audit (org, id);
CREATE INDEX audit_app ON audit (org, app, id) WHERE app IS NOT NULL;
