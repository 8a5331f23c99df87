-- Of a delivery of an ordered endpoint, `ordered` is 1 once it has its place in the order. It is 2 while its message is for
-- later: it takes its place when it is due. `place` is the number that it got then, from the same count as `seq`;
-- NULL: its own.
ALTER TABLE delivery ADD COLUMN place INTEGER;
DROP INDEX delivery_ordered;
-- Refills an ordered lane, in its order. A retry does not touch it.
CREATE INDEX delivery_in_order ON delivery (endpoint, coalesce(place, seq)) WHERE state = 0 AND ordered = 1;
-- Finds what is to take its place. It holds nothing else.
CREATE INDEX delivery_takes_place ON delivery (due_at) WHERE state = 0 AND ordered = 2;
