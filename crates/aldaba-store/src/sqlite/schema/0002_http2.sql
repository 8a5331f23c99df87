-- HTTP/2 is offered to the receiver.
ALTER TABLE endpoint ADD COLUMN http2 INTEGER NOT NULL DEFAULT 0;
