-- What people call an endpoint, and the mail address of whoever answers for it.
ALTER TABLE endpoint ADD COLUMN name TEXT;
ALTER TABLE endpoint ADD COLUMN owner_email TEXT;
