-- Where people of an application want to be told when something is wrong.
ALTER TABLE application ADD COLUMN alert_email TEXT;
