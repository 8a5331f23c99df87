-- How many retries of the delivery were planned. Of those that have ended, nobody knows any more whether the last was.
ALTER TABLE delivery ADD COLUMN retries INTEGER NOT NULL DEFAULT 0;
UPDATE delivery SET retries = attempts - (state <> 0) WHERE attempts > (state <> 0);
