-- Mails that have not left yet. The address of the operator is a setting: it is empty here. A mail that was composed has its
-- Message-ID, and mails that were joined in one have the same. `more`: how many it stands for besides, for want of room.
CREATE TABLE mail (
    seq        INTEGER PRIMARY KEY,
    org        BLOB NOT NULL,
    app        BLOB,
    endpoint   BLOB,
    address    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    body       TEXT NOT NULL,
    more       INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    due_at     INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    message_id TEXT
);
CREATE INDEX mail_due ON mail (due_at);
CREATE INDEX mail_address_waiting ON mail (address);
CREATE INDEX mail_message ON mail (message_id) WHERE message_id IS NOT NULL;

-- How many mails of an organization wait, and how many were left out because it was too much.
CREATE TABLE mail_count (
    org      BLOB PRIMARY KEY,
    waiting  INTEGER NOT NULL,
    left_out INTEGER NOT NULL
) WITHOUT ROWID;

-- How many mails an address got on a day.
CREATE TABLE mail_day (
    day     INTEGER NOT NULL,
    address TEXT NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (day, address)
) WITHOUT ROWID;

-- Outages that the owner of an endpoint was told of.
CREATE TABLE mail_outage (
    endpoint BLOB PRIMARY KEY,
    level    INTEGER NOT NULL
) WITHOUT ROWID;

-- Who wants no mails of an endpoint or an application.
CREATE TABLE mail_unsubscribed (
    subject BLOB NOT NULL,
    address TEXT NOT NULL,
    at      INTEGER NOT NULL,
    PRIMARY KEY (subject, address)
) WITHOUT ROWID;

-- Addresses of the owners of an application's endpoints. Without `confirmed_at` they get a request to confirm and nothing else.
CREATE TABLE mail_address (
    app          BLOB NOT NULL,
    address      TEXT NOT NULL,
    asked_at     INTEGER,
    confirmed_at INTEGER,
    PRIMARY KEY (app, address)
) WITHOUT ROWID;

-- Those that stand in endpoints already are confirmed, but for those that may have been given through a portal.
INSERT INTO mail_address (app, address, confirmed_at)
SELECT DISTINCT app, owner_email, 0 FROM endpoint
WHERE owner_email IS NOT NULL AND deleted = 0 AND NOT EXISTS (
    SELECT 1 FROM audit
    WHERE audit.org = endpoint.org AND audit.endpoint = endpoint.id AND audit.actor_kind = 2
        AND (audit.action = 'endpoint.create' OR audit.fields LIKE '%ownerEmail%')
);
