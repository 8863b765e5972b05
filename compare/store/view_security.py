"""Views run with the rights of who made them, so that an analyst needs no right on any table.

ClickHouse's default for a view is SQL SECURITY INVOKER: its reader would need SELECT on the tables beneath,
and could then read them without the view (https://clickhouse.com/docs/sql-reference/statements/create/view).
The definer is the user that migrates, which may read the tables anyway.
"""

from __future__ import annotations

import re

from ingest.errors import FatalError

_HEAD = re.compile(r"(CREATE OR REPLACE VIEW \w+(?: ON CLUSTER '[^']*')?)(\s+AS\b)")
_CLAUSE = "DEFINER = CURRENT_USER SQL SECURITY DEFINER"


def as_definer(statement: str) -> str:
    """The CREATE VIEW statement with the clause. Raises FatalError where it is of another form."""
    made, count = _HEAD.subn(rf"\1\n{_CLAUSE}\2", statement, count=1)
    if not count:
        raise FatalError(f"not a CREATE OR REPLACE VIEW name AS: {' '.join(statement.split())[:100]}")
    return made
