-- What the writer needs besides where `[store] cluster` is set.
GRANT CLUSTER ON *.* TO gnomon_writer;
GRANT REMOTE ON *.* TO gnomon_writer;
GRANT SYSTEM SYNC REPLICA ON gnomon.* TO gnomon_writer;
GRANT TABLE ENGINE ON ReplicatedMergeTree TO gnomon_writer;
GRANT TABLE ENGINE ON ReplicatedReplacingMergeTree TO gnomon_writer;
GRANT TABLE ENGINE ON Distributed TO gnomon_writer;
