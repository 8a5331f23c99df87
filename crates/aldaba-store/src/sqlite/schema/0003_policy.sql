-- Policies of an organization's own, as JSON.
CREATE TABLE policy (
    org        BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (org, name)
) WITHOUT ROWID;
-- Tells whether a policy is in use.
CREATE INDEX endpoint_policy ON endpoint (org, policy) WHERE deleted = 0;
