-- Alerts: from when one fires until it is resolved, and for a while after. Those of the server belong to the management
-- organization; those of an endpoint name it and its application. Values are numbers as text.
CREATE TABLE alert (
    id              BLOB PRIMARY KEY,
    org             BLOB NOT NULL,
    app             BLOB,
    endpoint        BLOB,
    rule            TEXT NOT NULL,
    value           TEXT NOT NULL,
    threshold       TEXT NOT NULL,
    fired_at        INTEGER NOT NULL,
    resolved_at     INTEGER,
    acknowledged_at INTEGER,
    acknowledged_by TEXT
) WITHOUT ROWID;
CREATE INDEX alert_org ON alert (org, id);
CREATE INDEX alert_firing ON alert (org, id) WHERE resolved_at IS NULL;
CREATE INDEX alert_past ON alert (org, resolved_at, id) WHERE resolved_at IS NOT NULL;
CREATE INDEX alert_judged ON alert (id) WHERE endpoint IS NULL AND resolved_at IS NULL;
CREATE INDEX alert_app ON alert (app, id) WHERE app IS NOT NULL;
CREATE INDEX alert_endpoint ON alert (endpoint, id) WHERE endpoint IS NOT NULL;
