-- Alert rules that are beyond their threshold, and not for long enough to fire. `threshold` as in `alert`: under another one, the time
-- begins anew.
CREATE TABLE pending_alert (
    org       BLOB NOT NULL,
    rule      TEXT NOT NULL,
    threshold TEXT NOT NULL,
    since     INTEGER NOT NULL,
    PRIMARY KEY (org, rule)
) WITHOUT ROWID;

-- When the first certificate expires that an endpoint shows to its receiver. The certificate itself is sealed.
ALTER TABLE endpoint ADD COLUMN certificate_expires_at INTEGER;
CREATE INDEX endpoint_certificate ON endpoint (org, certificate_expires_at)
    WHERE certificate_expires_at IS NOT NULL AND deleted = 0 AND disabled = 0;
