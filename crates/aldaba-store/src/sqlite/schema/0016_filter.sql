-- Which messages an endpoint wants by what is in them, as JSON; NULL: all.
ALTER TABLE endpoint ADD COLUMN filter TEXT;
-- What a message carries for filters to look at: names and values by turns.
ALTER TABLE message ADD COLUMN headers TEXT NOT NULL DEFAULT '';
