-- The events whose handlers have failed, with the last error of each. Written after the rollback, so a row here is no mark:
-- the next copy of the event is handled. Times are UTC.
CREATE TABLE IF NOT EXISTS webhook_events_failures (
    event_id VARCHAR(255) PRIMARY KEY NOT NULL,
    event_type VARCHAR(100) NOT NULL,
    error TEXT NOT NULL,
    failed_at TIMESTAMP NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);

CREATE INDEX IF NOT EXISTS idx_webhook_events_failures_failed_at ON webhook_events_failures (failed_at);
