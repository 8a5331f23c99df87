-- 0 is none; 1 is fifo that skips what ends without success, 2 is fifo that stops there.
ALTER TABLE endpoint ADD COLUMN ordering INTEGER NOT NULL DEFAULT 0;
-- Nothing of the message goes out before this moment.
ALTER TABLE message ADD COLUMN deliver_at INTEGER;
-- The delivery is of an ordered endpoint. It costs nothing where it is 0: the index below has only
-- what it needs, so that accepting and recording for other endpoints is as it was.
ALTER TABLE delivery ADD COLUMN ordered INTEGER NOT NULL DEFAULT 0;
-- Refills an ordered lane. A retry does not touch it.
CREATE INDEX delivery_ordered ON delivery (endpoint) WHERE state = 0 AND ordered = 1;
