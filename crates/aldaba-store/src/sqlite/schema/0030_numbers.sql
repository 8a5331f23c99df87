-- The last number that is reserved for deliveries, places and notices: the writer reserves them in blocks. Numbers that
-- SQLite has given until now are never given again.
INSERT INTO total (name, value)
SELECT 'numbers', coalesce(max(seq), 0) FROM sqlite_sequence WHERE name IN ('delivery', 'notice');
-- Continues behind a message: others may have the same moment.
DROP INDEX message_payload_until;
CREATE INDEX message_payload_until ON message (payload_until, app, id) WHERE payload_until IS NOT NULL AND expunged = 0;
