-- A replay has opened the delivery: its first attempt is made however late.
ALTER TABLE delivery ADD COLUMN replayed INTEGER NOT NULL DEFAULT 0;
-- Who let go what was held for an endpoint was a person. What was let go before this was known counts as such.
ALTER TABLE endpoint ADD COLUMN health_released_by_person INTEGER NOT NULL DEFAULT 0;
UPDATE endpoint SET health_released_by_person = 1 WHERE health_released_at IS NOT NULL;
-- Finds what waits past its stop date. A delivery that was never tried is due when its clock starts, so that the
-- index of its lane finds it; only what is due later than that is in this one, and accepting costs nothing for it.
CREATE INDEX delivery_tried ON delivery (endpoint, clock_start) WHERE state = 0 AND clock_start < due_at;

-- Somebody has discarded the dead delivery. Retention takes it where its policy keeps dead ones until they are removed.
ALTER TABLE delivery ADD COLUMN discarded INTEGER NOT NULL DEFAULT 0;
CREATE INDEX delivery_discarded ON delivery (endpoint, settled_at) WHERE state = 2 AND discarded = 1;
UPDATE delivery SET discarded = 1
WHERE state = 2 AND NOT EXISTS (SELECT 1 FROM dead_letter WHERE dead_letter.seq = delivery.seq)
    AND EXISTS (SELECT 1 FROM endpoint WHERE endpoint.id = delivery.endpoint AND endpoint.deleted = 0);
