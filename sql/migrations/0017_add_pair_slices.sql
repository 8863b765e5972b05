-- What a request is, so that parts of the traffic can be looked at apart.
ALTER TABLE pairs ADD COLUMN IF NOT EXISTS language LowCardinality(String) AFTER endpoint;
ALTER TABLE pairs ADD COLUMN IF NOT EXISTS kind LowCardinality(String) AFTER language
