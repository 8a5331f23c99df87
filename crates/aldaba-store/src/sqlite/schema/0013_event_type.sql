-- What an organization says about the kinds of events that it sends. `schemas` is a JSON object of JSON Schemas
-- by their versions.
CREATE TABLE event_type (
    org           BLOB    NOT NULL,
    name          TEXT    NOT NULL,
    id            BLOB    NOT NULL,
    archived      INTEGER NOT NULL,
    deprecated    INTEGER NOT NULL,
    validate      INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    feature_flags TEXT    NOT NULL,
    group_name    TEXT,
    description   TEXT    NOT NULL,
    schemas       TEXT,
    PRIMARY KEY (org, name)
);
-- The one endpoint that the message is for, whoever else subscribes to such messages: an example.
ALTER TABLE message ADD COLUMN only_for BLOB;
