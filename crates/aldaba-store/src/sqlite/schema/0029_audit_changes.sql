-- What the fields were before a change and are after it, as JSON; null: nothing is known of that.
ALTER TABLE audit ADD COLUMN changes TEXT;
-- The kind of thing: what stands before the first point of the action.
ALTER TABLE audit ADD COLUMN kind TEXT GENERATED ALWAYS AS (substr(action, 1, instr(action, '.') - 1)) VIRTUAL;
CREATE INDEX audit_kind ON audit (org, kind, id);
CREATE INDEX audit_resource ON audit (org, resource, id);
CREATE INDEX audit_endpoint ON audit (org, endpoint, id) WHERE endpoint IS NOT NULL;
