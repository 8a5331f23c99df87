-- Attempts without an answer, and those with one by the class of its status.
ALTER TABLE endpoint_minute ADD COLUMN no_answer INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_minute ADD COLUMN status_1xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_minute ADD COLUMN status_2xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_minute ADD COLUMN status_3xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_minute ADD COLUMN status_4xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_minute ADD COLUMN status_5xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN no_answer INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN status_1xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN status_2xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN status_3xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN status_4xx INTEGER NOT NULL DEFAULT 0;
ALTER TABLE endpoint_hour ADD COLUMN status_5xx INTEGER NOT NULL DEFAULT 0;

-- What happened in an organization in a minute and in an hour, since the Unix epoch. `attempt_…` is a histogram of how long
-- attempts took, `latency_…` one of the time from the event to the delivery, both in milliseconds; `…_millis` is the sum.
CREATE TABLE organization_minute (
    org                   BLOB    NOT NULL,
    minute                INTEGER NOT NULL,
    accepted              INTEGER NOT NULL,
    deliveries            INTEGER NOT NULL,
    success               INTEGER NOT NULL,
    retry                 INTEGER NOT NULL,
    failed                INTEGER NOT NULL,
    retries               INTEGER NOT NULL,
    delivered             INTEGER NOT NULL,
    settled_after_retry   INTEGER NOT NULL,
    settled_retries       INTEGER NOT NULL,
    inbound_received      INTEGER NOT NULL,
    inbound_duplicates    INTEGER NOT NULL,
    attempt_millis        INTEGER NOT NULL,
    latency_millis        INTEGER NOT NULL,
    dead_exhausted        INTEGER NOT NULL,
    dead_rejected         INTEGER NOT NULL,
    dead_stop_date        INTEGER NOT NULL,
    dead_endpoint_gone    INTEGER NOT NULL,
    dead_target_forbidden INTEGER NOT NULL,
    dead_cancelled        INTEGER NOT NULL,
    dead_expired          INTEGER NOT NULL,
    dead_payload_deleted  INTEGER NOT NULL,
    attempt_5             INTEGER NOT NULL,
    attempt_10            INTEGER NOT NULL,
    attempt_25            INTEGER NOT NULL,
    attempt_50            INTEGER NOT NULL,
    attempt_100           INTEGER NOT NULL,
    attempt_250           INTEGER NOT NULL,
    attempt_500           INTEGER NOT NULL,
    attempt_1000          INTEGER NOT NULL,
    attempt_2500          INTEGER NOT NULL,
    attempt_5000          INTEGER NOT NULL,
    attempt_10000         INTEGER NOT NULL,
    attempt_15000         INTEGER NOT NULL,
    attempt_20000         INTEGER NOT NULL,
    attempt_25000         INTEGER NOT NULL,
    attempt_30000         INTEGER NOT NULL,
    attempt_slower        INTEGER NOT NULL,
    latency_10            INTEGER NOT NULL,
    latency_50            INTEGER NOT NULL,
    latency_100           INTEGER NOT NULL,
    latency_250           INTEGER NOT NULL,
    latency_500           INTEGER NOT NULL,
    latency_1000          INTEGER NOT NULL,
    latency_2500          INTEGER NOT NULL,
    latency_5000          INTEGER NOT NULL,
    latency_10000         INTEGER NOT NULL,
    latency_30000         INTEGER NOT NULL,
    latency_60000         INTEGER NOT NULL,
    latency_300000        INTEGER NOT NULL,
    latency_900000        INTEGER NOT NULL,
    latency_3600000       INTEGER NOT NULL,
    latency_21600000      INTEGER NOT NULL,
    latency_86400000      INTEGER NOT NULL,
    latency_slower        INTEGER NOT NULL,
    PRIMARY KEY (org, minute)
) WITHOUT ROWID;
CREATE INDEX organization_minute_time ON organization_minute (minute);
CREATE TABLE organization_hour (
    org                   BLOB    NOT NULL,
    hour                  INTEGER NOT NULL,
    accepted              INTEGER NOT NULL,
    deliveries            INTEGER NOT NULL,
    success               INTEGER NOT NULL,
    retry                 INTEGER NOT NULL,
    failed                INTEGER NOT NULL,
    retries               INTEGER NOT NULL,
    delivered             INTEGER NOT NULL,
    settled_after_retry   INTEGER NOT NULL,
    settled_retries       INTEGER NOT NULL,
    inbound_received      INTEGER NOT NULL,
    inbound_duplicates    INTEGER NOT NULL,
    attempt_millis        INTEGER NOT NULL,
    latency_millis        INTEGER NOT NULL,
    dead_exhausted        INTEGER NOT NULL,
    dead_rejected         INTEGER NOT NULL,
    dead_stop_date        INTEGER NOT NULL,
    dead_endpoint_gone    INTEGER NOT NULL,
    dead_target_forbidden INTEGER NOT NULL,
    dead_cancelled        INTEGER NOT NULL,
    dead_expired          INTEGER NOT NULL,
    dead_payload_deleted  INTEGER NOT NULL,
    attempt_5             INTEGER NOT NULL,
    attempt_10            INTEGER NOT NULL,
    attempt_25            INTEGER NOT NULL,
    attempt_50            INTEGER NOT NULL,
    attempt_100           INTEGER NOT NULL,
    attempt_250           INTEGER NOT NULL,
    attempt_500           INTEGER NOT NULL,
    attempt_1000          INTEGER NOT NULL,
    attempt_2500          INTEGER NOT NULL,
    attempt_5000          INTEGER NOT NULL,
    attempt_10000         INTEGER NOT NULL,
    attempt_15000         INTEGER NOT NULL,
    attempt_20000         INTEGER NOT NULL,
    attempt_25000         INTEGER NOT NULL,
    attempt_30000         INTEGER NOT NULL,
    attempt_slower        INTEGER NOT NULL,
    latency_10            INTEGER NOT NULL,
    latency_50            INTEGER NOT NULL,
    latency_100           INTEGER NOT NULL,
    latency_250           INTEGER NOT NULL,
    latency_500           INTEGER NOT NULL,
    latency_1000          INTEGER NOT NULL,
    latency_2500          INTEGER NOT NULL,
    latency_5000          INTEGER NOT NULL,
    latency_10000         INTEGER NOT NULL,
    latency_30000         INTEGER NOT NULL,
    latency_60000         INTEGER NOT NULL,
    latency_300000        INTEGER NOT NULL,
    latency_900000        INTEGER NOT NULL,
    latency_3600000       INTEGER NOT NULL,
    latency_21600000      INTEGER NOT NULL,
    latency_86400000      INTEGER NOT NULL,
    latency_slower        INTEGER NOT NULL,
    PRIMARY KEY (org, hour)
) WITHOUT ROWID;
CREATE INDEX organization_hour_time ON organization_hour (hour);

-- How many deliveries of an organization wait. Beside the number of the commit, which shares its page.
INSERT INTO total (name, value)
SELECT 'waiting ' || lower(hex(endpoint.org)), count(*)
FROM delivery JOIN endpoint ON endpoint.id = delivery.endpoint WHERE delivery.state = 0 GROUP BY endpoint.org;
DELETE FROM total WHERE name = 'waiting';

-- Endpoints that are given up: failed, or gone.
CREATE INDEX endpoint_given_up ON endpoint (org) WHERE health_status >= 1 AND health_status <= 2 AND deleted = 0;
