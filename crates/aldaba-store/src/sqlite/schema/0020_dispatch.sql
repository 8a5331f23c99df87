-- An address that something was dispatched to: no endpoint that somebody has made. It is on no list, hears of no
-- event, and goes when nothing refers to it any more.
ALTER TABLE endpoint ADD COLUMN direct INTEGER NOT NULL DEFAULT 0;
DROP INDEX endpoint_app;
CREATE INDEX endpoint_app ON endpoint (app, id) WHERE deleted = 0 AND direct = 0;
DROP INDEX endpoint_walk;
CREATE INDEX endpoint_walk ON endpoint (app, id, org, policy, deleted, direct);

-- Headers that go out with this message alone, encrypted; and the job whose end it tells of.
ALTER TABLE message ADD COLUMN sealed_headers BLOB;
ALTER TABLE message ADD COLUMN job TEXT;
CREATE INDEX message_job ON message (app, job, id) WHERE job IS NOT NULL;

-- Whose it is, for what was dispatched: 1 by its address, 2 as the end of a job. Others are in neither index and
-- cost nothing for it.
ALTER TABLE delivery ADD COLUMN dispatched INTEGER NOT NULL DEFAULT 0;
ALTER TABLE delivery ADD COLUMN app BLOB;
CREATE INDEX delivery_dispatched ON delivery (app, dispatched, state, message) WHERE dispatched > 0;
-- What of it waits, as if it were one lane.
CREATE INDEX delivery_dispatched_due ON delivery (app, due_at) WHERE dispatched > 0 AND state = 0;
