"""The decision apart from reading, and the three forms of the report with hostile names."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser

from compare.floor import Excess
from compare.ship.bounds import Counts
from compare.ship.decide import at_margin, decide, slice_error
from compare.ship.html_page import html_page
from compare.ship.markdown import escaped, markdown_page
from compare.ship.model import (
    EXIT_CODES,
    Coverage,
    Evidence,
    LeftOut,
    OpenAlert,
    ServedNow,
    ShipVerdict,
    SliceCounts,
    Support,
    Tally,
    Terms,
    Validity,
    WorstPair,
)
from compare.ship.statements import alert_lines, need_line, support_cells
from ingest.errors import SettingsError

NOW = datetime(2026, 11, 29, 3, 0, tzinfo=UTC)
HOSTILE = (
    "<script>document.title='owned'</script>\"'><img src=x onerror=alert(1)> | [a](javascript:alert(1))"
    " ![x](http://127.0.0.1:1/leak.png) `code` **bold** </pre></svg> \x1b[31mred \u202eabc\nline two $x$"
)
SERVED = ServedNow(
    "candidate", "q4", NOW, None, "m", "vllm", "0.9", "awq-int4", "ab" * 32, None, None, 7, None, 4096
)


def evidence(whole: Counts = Counts(0, 0, 3_000), name: str = "q4", **changes: object) -> Evidence:  # noqa: B008
    made = Evidence(
        experiment=name,
        candidate=name,
        references=(name,),
        tally=Tally(
            whole=whole,
            slices=(SliceCounts("route", name, 1, Counts(30, 0, 30)), SliceCounts("tenant", "t", 1, whole)),
            first_at=NOW,
            last_at=NOW,
            first_ingested_at=NOW,
            last_ingested_at=NOW,
        ),
        coverage=Coverage(6_000, 3_000, 0.5, (LeftOut("skipped", name, 3_000),)),
        supports=(Support("kl_forced_mean_nats", "nats", "lower is better", 10, 0.01, 0.005, 0.2, None),),
        validity=(Validity("schema", 10, 2, 1, 4, 0),),
        served=(SERVED,),
        alerts=(OpenAlert("a", "critical", "regression_rate", "route", name, NOW, name),),
        worst=(WorstPair(name, "t", 0, 1, NOW, name, name, (name,), "numeric", 0.9, name, name, name),),
    )
    return msgspec.structs.replace(made, **changes)


def calm(whole: Counts, **changes: object) -> Evidence:
    """No slices, no alerts."""
    made = evidence(whole, "q4", alerts=(), **changes)
    return msgspec.structs.replace(made, tally=msgspec.structs.replace(made.tally, slices=()))


@pytest.mark.parametrize(
    ("whole", "terms", "decision"),
    [
        (Counts(), Terms(0.01), "no_data"),
        (Counts(0, 0, 3_000), Terms(0.01), "ship"),
        (Counts(0, 0, 3_000), Terms(0.01, min_coverage=0.51), "need_more"),
        (Counts(0, 0, 100), Terms(0.01), "need_more"),
        (Counts(100, 0, 900), Terms(0.01), "hold"),
        (Counts(100, 100, 800), Terms(0.01), "need_more"),
    ],
)
def test_the_rule(whole: Counts, terms: Terms, decision: str) -> None:
    found = decide(calm(whole), terms, NOW)
    assert found.decision == decision
    assert found.exit_code == EXIT_CODES[found.decision]
    assert found.reasons


def test_exit_codes_are_distinct_and_leave_2_to_errors() -> None:
    assert EXIT_CODES == {"ship": 0, "hold": 1, "need_more": 3, "no_data": 4, "mixed": 5}


def test_a_slice_on_hold_and_what_changed_come_before_ship() -> None:
    assert decide(evidence(), Terms(0.01), NOW).decision == "hold"
    later = msgspec.structs.replace(SERVED, seen_at=NOW.replace(hour=4), quantization="mxfp4")
    again = msgspec.structs.replace(SERVED, seen_at=NOW.replace(hour=4))
    assert decide(calm(Counts(0, 0, 3_000), served=(SERVED, later)), Terms(0.01), NOW).decision == "mixed"
    # Said once more, or by another endpoint, it is no change.
    other = msgspec.structs.replace(later, endpoint_name="full", role="reference")
    assert (
        decide(calm(Counts(0, 0, 3_000), served=(SERVED, again, other)), Terms(0.01), NOW).decision == "ship"
    )


def test_the_errors_of_all_slices_sum_to_no_more_than_the_whole() -> None:
    total = 5 * sum(slice_error(rank, 0.05) for rank in range(1, 100_000))
    assert 0.0499 < total <= 0.05


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        (Terms(1.0), "margin 1 is not between"),
        (Terms(-0.1), "margin -0.1 is not between"),
        (Terms(0.1, confidence=1.0), "confidence 1 is not between"),
        (Terms(0.1, min_coverage=2.0), "least coverage 2 is not"),
        (Terms(0.1, since=NOW, until=NOW), "is not before until"),
    ],
)
def test_terms_out_of_range(terms: Terms, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        decide(evidence(), terms, NOW)


class _Tags(HTMLParser):
    """Every element, attribute and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.fixture(scope="module")
def hostile() -> ShipVerdict:
    return decide(evidence(Counts(20, 10, 2_970), HOSTILE), Terms(0.01), NOW)


def test_no_stored_text_becomes_markup_in_html(hostile: ShipVerdict) -> None:
    seen = _Tags()
    seen.feed(html_page(hostile))
    assert not seen.tags & {"script", "img", "a", "iframe", "link", "object", "form"}
    assert not {name for name in seen.attributes if name.startswith("on")} | seen.attributes & {"src", "href"}
    assert "\x1b" not in html_page(hostile) and "\u202e" not in html_page(hostile)
    assert html.escape(r"\x1b[31mred \u202eabc") in html_page(hostile)


def test_no_stored_text_becomes_markup_in_markdown(hostile: ShipVerdict) -> None:
    page = markdown_page(hostile)
    plain = re.sub(r"\\.", "", "\n".join(line for line in page.split("\n") if not line.startswith("    ")))
    assert "<" not in plain and "](" not in plain and "`" not in plain
    # A table's row has as many cells as its head.
    rows = [line for line in plain.split("\n") if line.startswith("|")]
    heads: list[int] = []
    for before, line in zip(["", *rows], rows, strict=False):
        if line.startswith("| ---"):
            heads.append(before.count("|"))
            assert line.count("|") == heads[-1]
    assert {line.count("|") for line in rows} <= set(heads)
    assert escaped("a|b\n<i>") == r"a\|b\\n&lt;i&gt;"


def test_the_json_is_what_the_schema_says(hostile: ShipVerdict) -> None:
    read = json.loads(msgspec.json.encode(hostile))
    assert read["schema"] == "gnomon.verdict/1"
    assert read["candidate"] == HOSTILE
    assert msgspec.json.decode(msgspec.json.encode(hostile), type=ShipVerdict) == hostile


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_in_a_browser(
    hostile: ShipVerdict, browser: Browser, tmp_path: Path, width: int, scheme: str
) -> None:
    file = tmp_path / "verdict.html"
    file.write_text(html_page(hostile), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri())
    assert page.title().startswith("Hold: <script>")
    assert asked == [file.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == ("rgb(255, 255, 255)" if scheme == "light" else "rgb(20, 23, 26)")
    page.close()


@pytest.mark.parametrize(
    ("pairs", "compared_s", "hours"),
    [
        # Mirrored within a second, compared in ten minutes: 5 a minute.
        (50, 600.0, lambda needed: needed / 300),
        (50, 59.0, None),
        (9, 600.0, None),
    ],
)
def test_the_time_that_is_left_is_told_by_when_pairs_were_compared(
    pairs: int, compared_s: float, hours: Callable[[int], float] | None
) -> None:
    found = calm(Counts(0, 0, pairs))
    tally = msgspec.structs.replace(
        found.tally,
        last_at=NOW + timedelta(seconds=1),
        last_ingested_at=NOW + timedelta(seconds=compared_s),
    )
    verdict = decide(msgspec.structs.replace(found, tally=tally), Terms(0.01), NOW)
    need = verdict.need
    assert need is not None and need.pairs is not None
    assert need.hours == (None if hours is None else pytest.approx(hours(need.pairs)))
    assert ("rate not known yet" in (need_line(verdict) or "")) is (hours is None)
    # Of a kept one, against another margin.
    other = at_margin(verdict, 0.02).need
    assert other is not None and other.pairs is not None
    assert other.hours == (None if hours is None else pytest.approx(hours(other.pairs)))


@pytest.mark.parametrize(
    ("direction", "floor", "candidate"), [("lower is better", 0.25, 0.5), ("higher is better", -0.5, -0.25)]
)
def test_the_excess_is_the_difference_of_the_two_numbers_beside_it(
    direction: str, floor: float, candidate: float
) -> None:
    """The mean of all pairs is of others: less the floor it is no excess."""
    excess = Excess("m", "", 7, candidate, floor, 0.25, 0.1, 0.4, "reference")
    cells = support_cells(Support("m", "", direction, 19, 0.375, 0.375, 0.5, excess))
    assert cells[1:3] == ("19", "0.375")
    assert cells[4:] == (
        f"{abs(floor)}, candidate {abs(candidate)} in the same 7 asked twice",
        "0.25 (0.1 to 0.4)",
    )


def test_alerts_of_one_metric_are_one_line_and_none_where_nothing_was_counted() -> None:
    slices = [
        OpenAlert(f"{n}" * 32, "warning", "kl_forced", "route", f"r{n}", NOW, "s" * 300) for n in range(1, 8)
    ]
    whole = OpenAlert("a" * 32, "critical", "kl_forced", "experiment", "", NOW, "s" * 300)
    other = OpenAlert("b" * 32, "warning", "latency_ratio", "tenant", "t", NOW, "s" * 300)
    firing = calm(Counts(0, 0, 10))
    firing = msgspec.structs.replace(firing, alerts=(*slices, whole, other))
    verdict = decide(firing, Terms(0.01), NOW)
    since = f"{NOW:%Y-%m-%d %H:%M:%S}"
    assert alert_lines(verdict) == [
        f"kl_forced, critical, since {since} UTC: the whole, route r1, route r2, route r3 and 4 more;"
        " gnomon alerts show aaaaaaaaaaaa",
        f"latency_ratio, warning, since {since} UTC: tenant t; gnomon alerts show bbbbbbbbbbbb",
    ]
    nothing = decide(msgspec.structs.replace(firing, tally=Tally()), Terms(0.01), NOW)
    assert nothing.decision == "no_data" and alert_lines(nothing) == []
    assert "9 alerts are firing" in nothing.warnings
