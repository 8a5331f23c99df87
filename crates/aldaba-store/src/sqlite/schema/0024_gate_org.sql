-- A gate belongs to an organization: the failures of one never hold the lanes of another. `scope` is an application's id, or
-- empty for the whole host. `failed_at` is the failure that each lane counts its own policy's longest hold from.
CREATE TABLE gate_of_org (
    org        BLOB    NOT NULL,
    origin     TEXT    NOT NULL,
    scope      BLOB    NOT NULL,
    failures   INTEGER NOT NULL,
    held_until INTEGER,
    hold       INTEGER NOT NULL,
    failed_at  INTEGER,
    probing    INTEGER NOT NULL,
    since      INTEGER,
    why        TEXT    NOT NULL,
    PRIMARY KEY (org, origin, scope)
) WITHOUT ROWID;
-- Gates of whole hosts belonged to nobody. They are learnt again.
INSERT INTO gate_of_org (org, origin, scope, failures, held_until, hold, failed_at, probing, since, why)
SELECT application.org, gate.origin, gate.scope, gate.failures, gate.held_until, gate.hold,
    gate.held_until - gate.hold / 1000000, gate.probing, gate.since, gate.why
FROM gate JOIN application ON application.id = gate.scope
WHERE length(gate.scope) > 0;
DROP TABLE gate;
ALTER TABLE gate_of_org RENAME TO gate;
