-- An endpoint of a deleted application is deleted, without a mark of its own. Who looks for endpoints by what they name
-- or where they are sees whose each is, and passes over all that a deleted application has left in one step.
DROP INDEX endpoint_policy;
CREATE INDEX endpoint_policy ON endpoint (org, policy, app) WHERE deleted = 0;
DROP INDEX endpoint_profile;
CREATE INDEX endpoint_profile ON endpoint (org, profile, app) WHERE deleted = 0 AND profile IS NOT NULL;
DROP INDEX endpoint_url;
CREATE INDEX endpoint_url ON endpoint (url, org, app) WHERE deleted = 0;
