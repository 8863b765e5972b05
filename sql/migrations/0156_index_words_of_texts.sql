-- Words of prompts and answers, so that the explorer's search skips granules without them (docs/design/0006-store-layout.md).
-- `\n` and `\t` of the body's JSON would stick to the word behind them. Rows of before have no index: they are read.
ALTER TABLE requests
    ADD INDEX IF NOT EXISTS body_words lower(replaceAll(replaceAll(body, '\\n', ' '), '\\t', ' '))
    TYPE tokenbf_v1(65536, 3, 0) GRANULARITY 1;
ALTER TABLE observations
    ADD INDEX IF NOT EXISTS text_words lower(text) TYPE tokenbf_v1(65536, 3, 0) GRANULARITY 1
