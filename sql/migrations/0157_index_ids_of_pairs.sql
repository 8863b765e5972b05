-- One request among millions of pairs, by its id or by its hash, which are in no sort key.
ALTER TABLE pairs
    ADD INDEX IF NOT EXISTS request_ids request_id TYPE bloom_filter(0.01) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS request_hashes request_hash TYPE bloom_filter(0.01) GRANULARITY 1
