-- What a detector is, which baseline it is judged against, and how far an open alert is from its end.
ALTER TABLE detector_state
    ADD COLUMN IF NOT EXISTS detector LowCardinality(String),
    ADD COLUMN IF NOT EXISTS baseline_version UInt32,
    ADD COLUMN IF NOT EXISTS recovery Nullable(Float64)
