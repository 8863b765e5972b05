-- Offsets of the range that Kafka's retention removed before they were read.
ALTER TABLE delivered_ranges ADD COLUMN IF NOT EXISTS lost_retention UInt64 CODEC(ZSTD(1)) AFTER records
