-- The version of the baseline that an alert was judged against; 0 where what is tolerated was declared.
ALTER TABLE alerts ADD COLUMN IF NOT EXISTS baseline_version UInt32 AFTER group_key
