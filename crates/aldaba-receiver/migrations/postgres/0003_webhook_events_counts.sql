-- How many events were new and how many were duplicates, for each hour (UTC). The rate of duplicates is computed from it, so
-- that it survives a restart and is that of all processes.
CREATE TABLE IF NOT EXISTS webhook_events_counts (
    hour TIMESTAMP PRIMARY KEY,
    new_events BIGINT NOT NULL,
    duplicates BIGINT NOT NULL
);
