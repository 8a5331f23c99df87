-- How many messages an organization or an application has sent on a day (days since 1970, UTC), where that has
-- a limit.
CREATE TABLE message_count (
    day   INTEGER NOT NULL,
    owner BLOB    NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (day, owner)
) WITHOUT ROWID;
