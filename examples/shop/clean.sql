-- Removes marks that no sender asks about any more; run it daily. It says how many there were. An event that comes again
-- after its mark is gone is handled again: keep marks for longer than the sender tries, and than anybody sends by hand.
DELETE FROM webhook_events WHERE processed_at < timezone('utc', now()) - INTERVAL '30 days';
