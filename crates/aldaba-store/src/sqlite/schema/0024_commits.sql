-- How many batches have been committed. The watermark beside the database is compared with it at a start.
INSERT INTO total (name, value) VALUES ('commits', 0);
