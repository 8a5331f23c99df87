-- Organizations take turns with what they want to hear of, and of each only so much waits. Those of which anything
-- waits have a row here: how much it is, and how much was left out because it was too much.
CREATE INDEX notice_org ON notice (org);
CREATE TABLE notice_count (
    org      BLOB PRIMARY KEY,
    waiting  INTEGER NOT NULL,
    left_out INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO notice_count (org, waiting) SELECT org, count(*) FROM notice GROUP BY org;
-- The keys of an organization are counted when one is made, and those of an application go with it.
CREATE INDEX api_key_org ON api_key (org);
CREATE INDEX api_key_app ON api_key (app) WHERE app IS NOT NULL;
DELETE FROM api_key WHERE app IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM application WHERE application.id = api_key.app AND application.deleted = 0
);
