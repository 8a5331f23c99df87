-- Organizations take turns with what they want to hear of, and of each only so much waits. Those of which anything
-- waits have a row here: how much it is, and how much was left out because it was too much.
CREATE INDEX notice_org ON notice (org);
CREATE TABLE notice_count (
    org      BLOB PRIMARY KEY,
    waiting  INTEGER NOT NULL,
    left_out INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
INSERT INTO notice_count (org, waiting) SELECT org, count(*) FROM notice GROUP BY org;
