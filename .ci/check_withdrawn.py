"""Names the pinned releases that their authors have withdrawn ("yanked"). Run by `make audit`.

Reads what `pip install --dry-run --report FILE` wrote: https://pip.pypa.io/en/stable/reference/installation-report/
"""

from __future__ import annotations

import json
import sys
from pathlib import Path


def withdrawn(report: str) -> list[str]:
    """`name==version` of each. Raises KeyError for the report of an old pip, which does not tell."""
    items = json.loads(report)["install"]
    return sorted("{name}=={version}".format(**one["metadata"]) for one in items if one["is_yanked"])


if __name__ == "__main__":
    told = withdrawn(Path(sys.argv[1]).read_text(encoding="utf-8"))
    sys.exit(f"withdrawn by their authors: {', '.join(told)}" if told else 0)
