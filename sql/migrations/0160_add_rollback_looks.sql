-- What condition C has seen of each page, for as far back as a rule needs it: JSON (compare/rollback/kept_looks.py).
-- Whoever evaluates next goes on from it.
ALTER TABLE rollback_state
    ADD COLUMN IF NOT EXISTS looks String CODEC(ZSTD(3))
