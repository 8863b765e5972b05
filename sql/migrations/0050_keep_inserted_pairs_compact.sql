-- A part of up to 128 MiB, such as one inserted block, is one file for all columns, not two for each stream.
ALTER TABLE pairs MODIFY SETTING min_bytes_for_wide_part = 134217728
