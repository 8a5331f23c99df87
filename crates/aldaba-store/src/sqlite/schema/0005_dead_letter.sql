-- Deliveries that ended without success, while their endpoints were there, and that nobody has
-- discarded. A row is written when a
-- delivery dies, which is rare; the others cost nothing for it. `event_type` is a copy, so that a
-- filter need not read the message, and so that it is known after the message is gone.
CREATE TABLE dead_letter (
    seq        INTEGER NOT NULL PRIMARY KEY,
    org        BLOB    NOT NULL,
    app        BLOB    NOT NULL,
    endpoint   BLOB    NOT NULL,
    settled_at INTEGER NOT NULL,
    reason     INTEGER NOT NULL,
    event_type TEXT    NOT NULL
);
-- Every index ends with the number of its row, which is `seq`.
CREATE INDEX dead_letter_org ON dead_letter (org, settled_at);
CREATE INDEX dead_letter_app ON dead_letter (app, settled_at);
CREATE INDEX dead_letter_endpoint ON dead_letter (endpoint, settled_at);

INSERT INTO dead_letter (seq, org, app, endpoint, settled_at, reason, event_type)
SELECT delivery.seq, endpoint.org, endpoint.app, delivery.endpoint, delivery.settled_at, delivery.reason,
    coalesce(message.event_type, '')
FROM delivery
JOIN endpoint ON endpoint.id = delivery.endpoint
LEFT JOIN message ON message.app = endpoint.app AND message.id = delivery.message
WHERE delivery.state = 2 AND endpoint.deleted = 0;

-- The attempts of one delivery lie together; those of a message are sorted by their ids when they are
-- listed. An index of its own for deliveries would be one more write for every attempt.
DROP INDEX attempt_message;
CREATE INDEX attempt_message ON attempt (message, seq, id);
