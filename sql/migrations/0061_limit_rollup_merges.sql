-- A row of states is some kilobytes on disk and more in memory, which a merge does not count when it sizes its blocks.
ALTER TABLE rollup_hourly
    MODIFY SETTING merge_max_block_size = 512
