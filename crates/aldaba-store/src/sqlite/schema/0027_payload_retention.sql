-- The payload of the message is not needed after this moment; NULL: it is kept as long as the message.
ALTER TABLE message ADD COLUMN payload_until INTEGER;
-- Finds payloads whose time has come. It holds no other messages.
CREATE INDEX message_payload_until ON message (payload_until) WHERE payload_until IS NOT NULL AND expunged = 0;
