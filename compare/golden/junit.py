"""Golden runs as JUnit XML, which CI servers read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from compare.golden.score import CaseResult
from compare.golden.session import Outcome
from compare.visible import visible_line

_ILLEGAL = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot hold, escaped or not."""
_LONGEST_ANSWER = 4_000


def junit_xml(outcomes: Sequence[Outcome]) -> bytes:
    """One suite for each run, one test case for each case of the set; UTF-8.

    A case that failed is a `failure`, one that could not be asked an `error`. The test case `(run)` says
    whether the run passed, which also depends on its mean score. Names, reasons and answers are hostile
    text: what XML cannot hold is written out.
    """
    root = ElementTree.Element("testsuites", name="gnomon golden")
    for outcome in outcomes:
        _suite(root, outcome)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(root: ElementTree.Element, outcome: Outcome) -> None:
    run, results = outcome.run, outcome.results
    failed = sum(one.status == "failed" for one in results)
    away = sum(one.status == "away" for one in results)
    is_run_failed = run.status == "failed"
    suite = ElementTree.SubElement(
        root,
        "testsuite",
        name=f"{run.set_name} against {run.endpoint_name}",
        tests=str(len(results) + 1),
        failures=str(failed + is_run_failed),
        errors=str(away + (run.status == "incomplete")),
        skipped="0",
        time=f"{(run.finished_at - run.started_at).total_seconds():.3f}",
        timestamp=run.started_at.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    properties = ElementTree.SubElement(suite, "properties")
    told = {
        "run_id": run.run_id,
        "experiment": run.experiment,
        "mean_score": run.totals.mean_score,
        "exact_rate": run.totals.exact_rate,
        "extraction_accuracy": run.totals.extraction_accuracy,
        "faulty_rate": run.totals.faulty_rate,
        "model": run.served.model,
        "quantization": run.served.quantization,
    }
    for name, value in told.items():
        if value is not None:
            ElementTree.SubElement(properties, "property", name=name, value=_fit(str(value)))
    class_name = f"golden.{run.set_name}.{run.endpoint_name}"
    own = ElementTree.SubElement(suite, "testcase", classname=class_name, name="(run)", time="0")
    if run.status != "passed":
        kind = "failure" if is_run_failed else "error"
        message = _fit("; ".join(run.reasons))
        ElementTree.SubElement(own, kind, message=message, type=run.status).text = message
    for one in results:
        _case(suite, class_name, one)


def _case(suite: ElementTree.Element, class_name: str, one: CaseResult) -> None:
    answer = one.answer
    seconds = answer.timings.total_ms / 1000 if answer is not None and answer.timings is not None else 0.0
    case = ElementTree.SubElement(
        suite, "testcase", classname=class_name, name=_fit(one.case_id), time=f"{seconds:.3f}"
    )
    if one.is_passed:
        return
    message = _fit("; ".join(one.reasons))
    kind = "failure" if one.status == "failed" else "error"
    failure = ElementTree.SubElement(case, kind, message=message, type=", ".join(one.failed_checks) or "away")
    lines = [*one.reasons]
    if one.score is not None:
        lines.append(f"score {one.score:.3f}")
    if answer is not None and answer.text:
        lines += ["", "answer:", answer.text[:_LONGEST_ANSWER]]
    failure.text = _fit("\n".join(lines))


def _fit(text: str) -> str:
    return _ILLEGAL.sub(lambda found: visible_line(found.group()), text)
