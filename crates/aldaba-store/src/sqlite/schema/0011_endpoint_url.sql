-- Who has an endpoint at an origin.
CREATE INDEX endpoint_url ON endpoint (url, org) WHERE deleted = 0;
