-- Wire profiles of an organization's own, as JSON.
CREATE TABLE profile (
    org        BLOB    NOT NULL,
    name       TEXT    NOT NULL,
    body       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (org, name)
) WITHOUT ROWID;
-- Tells whether a profile is in use. Most endpoints name none.
CREATE INDEX endpoint_profile ON endpoint (org, profile) WHERE deleted = 0 AND profile IS NOT NULL;
-- Which version of its type's form a payload has, where its sender said so.
ALTER TABLE message ADD COLUMN version TEXT;
