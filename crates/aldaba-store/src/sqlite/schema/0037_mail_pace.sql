-- `last_at`: when it was counted last. The operator gets one mail a minute, also while the server starts again and again.
ALTER TABLE mail_day ADD COLUMN last_at INTEGER NOT NULL DEFAULT 0;

-- Between the warning (1) and the failure there is a step: a delivery was given up (2).
UPDATE mail_outage SET level = 3 WHERE level = 2;
