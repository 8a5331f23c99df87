-- Words that a sender has put on a message, to find it by. No part of what goes out.
ALTER TABLE message ADD COLUMN tags TEXT NOT NULL DEFAULT '';

-- State 0 is running. `wanted` has bit 0 for the dead, 1 for the delivered, 2 for what is missing, and 3 for the
-- cancelled.
CREATE TABLE replay (
    id           BLOB    NOT NULL PRIMARY KEY,
    org          BLOB    NOT NULL,
    app          BLOB    NOT NULL,
    endpoint     BLOB    NOT NULL,
    kind         INTEGER NOT NULL,
    state        INTEGER NOT NULL,
    since        INTEGER NOT NULL,
    until        INTEGER NOT NULL,
    wanted       INTEGER NOT NULL,
    status_class INTEGER,
    died_since   INTEGER,
    rate         INTEGER NOT NULL,
    reached      BLOB,
    looked_at    INTEGER NOT NULL,
    opened       INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    event_types  TEXT    NOT NULL,
    channel      TEXT,
    tag          TEXT
) WITHOUT ROWID;
CREATE INDEX replay_org ON replay (org, id);
CREATE INDEX replay_running ON replay (id) WHERE state = 0;
