-- What an endpoint does with messages while it is turned off (0: they are skipped, 1: they wait), its last
-- error, when what was held for it was last let go, and how often a hand has changed its health.
ALTER TABLE endpoint ADD COLUMN when_disabled INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint ADD COLUMN health_released_at INTEGER;
ALTER TABLE endpoint ADD COLUMN health_epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint ADD COLUMN error_at INTEGER;
ALTER TABLE endpoint ADD COLUMN error_status INTEGER;
ALTER TABLE endpoint ADD COLUMN error_text TEXT;

-- How the condition of an endpoint has changed, the newest so many of it.
CREATE TABLE health_change (
    endpoint BLOB    NOT NULL,
    number   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    was      INTEGER NOT NULL,
    became   INTEGER NOT NULL,
    cause    INTEGER NOT NULL,
    detail   TEXT    NOT NULL,
    PRIMARY KEY (endpoint, number)
) WITHOUT ROWID;

-- When the first of the holds began that have followed each other since, and the failure behind the newest.
ALTER TABLE gate ADD COLUMN since INTEGER;
ALTER TABLE gate ADD COLUMN why TEXT NOT NULL DEFAULT '';
