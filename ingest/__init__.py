"""From a Kafka record to a response pair: decoding, replay, and the answers as they were read."""
