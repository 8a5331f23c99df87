-- The name of an endpoint for people, and the mail address of its owner.
ALTER TABLE endpoint ADD COLUMN name TEXT;
ALTER TABLE endpoint ADD COLUMN owner_email TEXT;
