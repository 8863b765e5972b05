from __future__ import annotations

import re
from pathlib import Path

from compare.metrics.reasons import REASONS
from compare.metrics.spec import METRICS, MetricSpec
from ingest.forced import UNSCORED_REASONS

DOCS = Path(__file__).parents[3] / "docs"
DOCUMENT = (DOCS / "metrics.md").read_text(encoding="utf-8")


def row(spec: MetricSpec) -> str:
    low = "-inf" if spec.low is None else f"{spec.low:g}"
    high = "inf" if spec.high is None else f"{spec.high:g}"
    reasons = ", ".join(f"`{reason}`" for reason in spec.unscored)
    cells = (
        f"`{spec.name}`",
        spec.unit,
        spec.direction,
        f"{low} to {high}",
        spec.formula,
        spec.source,
        reasons,
    )
    return f"| {' | '.join(cells)} |"


def section(title: str) -> list[str]:
    """The rows of the table under a heading, without its two head lines."""
    body = DOCUMENT.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    return [line for line in body.splitlines() if line.startswith("|")][2:]


def test_names_are_unique_and_carry_their_unit() -> None:
    names = [spec.name for spec in METRICS]
    assert len(set(names)) == len(names)
    for spec in METRICS:
        assert (spec.unit == "nats") == spec.name.endswith("_nats")
        assert (spec.unit == "ms") == spec.name.endswith("_ms")
        assert re.fullmatch(r"[a-z0-9_]+", spec.name)


def test_every_reason_is_explained_and_used() -> None:
    used = {reason for spec in METRICS for reason in spec.unscored}
    assert used == set(REASONS)
    for spec in METRICS:
        assert len(set(spec.unscored)) == len(spec.unscored)
        if "forced" in spec.name:
            assert set(UNSCORED_REASONS) <= set(spec.unscored)


def test_the_document_has_every_metric_as_it_is() -> None:
    assert section("Metrics") == [row(spec) for spec in METRICS]


def test_the_document_has_every_reason_as_it_is() -> None:
    assert section("Reasons") == [f"| `{code}` | {meaning} |" for code, meaning in sorted(REASONS.items())]


def test_the_document_links_the_calibration_and_no_page_that_is_not_there() -> None:
    links = re.findall(r"\]\(([^)#]+)(?:#([^)]*))?\)", DOCUMENT)
    assert "calibration.md" in {page for page, _ in links}
    for page, anchor in links:
        text = (DOCS / page).read_text(encoding="utf-8")
        headings = {
            line.lstrip("# ").lower().replace(" ", "-") for line in text.splitlines() if line.startswith("#")
        }
        assert not anchor or anchor in headings
