"""What `gnomon migrate` says of its steps."""

from __future__ import annotations

from compare.store.migrate import Step

_NOUNS = {"migration": ("migration", "migrations"), "view": ("view", "views"), "ttl": ("TTL", "TTLs")}


def steps_text(steps: list[Step], *, verb: str, with_sql: bool) -> str:
    """A count of each kind and the steps' names; `with_sql` also the statements.

    With statements all else is an SQL comment, so that the whole is a script.
    """
    if not steps:
        return "-- up to date" if with_sql else "up to date"
    counts = {kind: sum(step.kind == kind for step in steps) for kind in _NOUNS}
    total = ", ".join(f"{count} {_NOUNS[kind][count != 1]}" for kind, count in counts.items() if count)
    lines = [f"-- {verb} {total}" if with_sql else f"{verb} {total}"]
    for step in steps:
        if with_sql:
            lines += ["", f"-- {step.name}", *(f"{statement};" for statement in step.statements)]
        elif step.kind != "view":
            lines.append(f"  {step.name}")
    return "\n".join(lines)
