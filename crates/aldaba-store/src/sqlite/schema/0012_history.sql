-- The payload was deleted by hand, and is empty.
ALTER TABLE message ADD COLUMN expunged INTEGER NOT NULL DEFAULT 0;

-- What a delivery that succeeds at once does not leave: failures, and answers that are no 2xx. They are looked for
-- among very many others, and are few of them, so that a usual attempt costs nothing for it.
CREATE INDEX attempt_unusual ON attempt (endpoint, id)
    WHERE success = 0 OR status_code < 200 OR status_code > 299;

-- The counters of an endpoint's minutes, summed up; `hour` counts from the Unix epoch.
CREATE TABLE endpoint_hour (
    endpoint     BLOB    NOT NULL,
    hour         INTEGER NOT NULL,
    attempts     INTEGER NOT NULL,
    successes    INTEGER NOT NULL,
    retries      INTEGER NOT NULL,
    delivered    INTEGER NOT NULL,
    dead         INTEGER NOT NULL,
    within_5     INTEGER NOT NULL,
    within_10    INTEGER NOT NULL,
    within_25    INTEGER NOT NULL,
    within_50    INTEGER NOT NULL,
    within_100   INTEGER NOT NULL,
    within_250   INTEGER NOT NULL,
    within_500   INTEGER NOT NULL,
    within_1000  INTEGER NOT NULL,
    within_2500  INTEGER NOT NULL,
    within_5000  INTEGER NOT NULL,
    within_10000 INTEGER NOT NULL,
    within_30000 INTEGER NOT NULL,
    slower       INTEGER NOT NULL,
    PRIMARY KEY (endpoint, hour)
) WITHOUT ROWID;

-- Every hour up to `hours_summed` is summed up for all endpoints; up to `hours_begun` it may be for some. What is
-- counted for such an hour afterwards is added to its sum too.
INSERT INTO total (name, value) VALUES ('hours_summed', -1), ('hours_begun', -1);

-- Attempts of an application by hour and event type. They are written some seconds after what they count:
-- `types_counted` is the last attempt that is in them.
CREATE TABLE application_hour (
    app        BLOB    NOT NULL,
    hour       INTEGER NOT NULL,
    event_type TEXT    NOT NULL,
    attempts   INTEGER NOT NULL,
    successes  INTEGER NOT NULL,
    PRIMARY KEY (app, hour, event_type)
) WITHOUT ROWID;
INSERT INTO total (name, value) VALUES ('types_counted', (SELECT coalesce(max(rowid), 0) FROM attempt));
