-- `reader`: the address in the one form by which it is counted, joined and looked up (`operations/mail/reader.rs`). Mails of one
-- organization to one reader are joined; those of different organizations never are.
ALTER TABLE mail ADD COLUMN reader TEXT NOT NULL DEFAULT '';
UPDATE mail SET reader = lower(address);
DROP INDEX mail_address_waiting;
CREATE INDEX mail_reader_waiting ON mail (org, reader);
CREATE INDEX mail_reader ON mail (reader);
CREATE INDEX mail_turn ON mail (org, due_at);

-- The counts of a day have other keys now: they begin anew.
DELETE FROM mail_day;

-- Addresses and unsubscriptions stand under the reader. `given_at`: when an address was given that is to be confirmed.
ALTER TABLE mail_address ADD COLUMN given_at INTEGER NOT NULL DEFAULT 0;
INSERT INTO mail_address (app, address, asked_at, confirmed_at)
SELECT app, lower(address), max(asked_at), max(confirmed_at) FROM mail_address
WHERE address <> lower(address) GROUP BY app, lower(address)
ON CONFLICT (app, address) DO UPDATE SET confirmed_at = coalesce(mail_address.confirmed_at, excluded.confirmed_at);
DELETE FROM mail_address WHERE address <> lower(address);
UPDATE mail_address SET given_at = coalesce(asked_at, 0);
CREATE INDEX mail_address_unconfirmed ON mail_address (app, given_at) WHERE confirmed_at IS NULL;
INSERT INTO mail_unsubscribed (subject, address, at)
SELECT subject, lower(address), at FROM mail_unsubscribed WHERE address <> lower(address)
ON CONFLICT DO NOTHING;
DELETE FROM mail_unsubscribed WHERE address <> lower(address);
