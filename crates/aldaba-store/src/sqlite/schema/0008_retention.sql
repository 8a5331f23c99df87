-- Delivered, and dead (or skipped, state 3), deliveries of an endpoint in the order of their ends: which are too old, and which are
-- the newest. Each settled delivery is in one of the two; a waiting one is in neither, so that a retry
-- costs nothing.
CREATE INDEX delivery_delivered ON delivery (endpoint, settled_at) WHERE state = 1;
CREATE INDEX delivery_dead ON delivery (endpoint, settled_at, seq, state) WHERE state >= 2;
-- Walks all endpoints application by application; it holds all that the walk needs.
CREATE INDEX endpoint_walk ON endpoint (app, id, org, policy, deleted);
CREATE INDEX application_deleted ON application (id) WHERE deleted = 1;
