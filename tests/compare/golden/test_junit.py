"""JUnit XML, as another parser reads it, with hostile names and answers."""

from __future__ import annotations

from xml.etree import ElementTree

import msgspec

from compare.golden.junit import junit_xml
from compare.golden.session import Outcome
from ingest.observation import Observation, Timings
from tests.compare.golden.rig import result, run

HOSTILE = "]]><a b='\"&\x00\x1b[31m\ud800\ufffe\u202e\n"


def outcome(*results: object, **more: object) -> Outcome:
    return Outcome(run(**more), tuple(results), None)  # type: ignore[arg-type]


def test_counts_and_kinds() -> None:
    seen = Observation(text="an answer", timings=Timings(1500.0))
    xml = junit_xml([
        outcome(
            result("good"),
            result("bad", 0.2, "failed", reasons=("score: low", "pattern: not found"),
                   failed_checks=("score", "pattern"), answer=seen),
            result("away", None, "away", reasons=("endpoint is away",)),
            status="incomplete", reasons=("1 of 3 cases could not be asked",),
        ),
        outcome(result("good")),
    ])  # fmt: skip
    first, second = ElementTree.fromstring(xml).findall("testsuite")
    assert first.attrib | {"timestamp": ""} == {
        "name": "s against cand", "tests": "4", "failures": "1", "errors": "2", "skipped": "0",
        "time": "60.000", "timestamp": "",
    }  # fmt: skip
    cases = {one.attrib["name"]: one for one in first.findall("testcase")}
    assert list(cases) == ["(run)", "good", "bad", "away"]
    assert list(cases["good"]) == []
    assert cases["bad"].attrib["time"] == "1.500"
    (failure,) = cases["bad"]
    assert (failure.tag, failure.attrib["type"]) == ("failure", "score, pattern")
    assert failure.attrib["message"] == "score: low; pattern: not found"
    assert failure.text is not None and failure.text.endswith("answer:\nan answer")
    assert [[child.tag for child in cases[name]] for name in ("(run)", "away")] == [["error"], ["error"]]
    assert (second.attrib["failures"], second.attrib["errors"], second.attrib["tests"]) == ("0", "0", "2")


def test_a_run_that_failed_by_its_mean_alone_fails_in_ci() -> None:
    xml = junit_xml([outcome(result("good"), status="failed", reasons=("mean score low",))])
    (suite,) = ElementTree.fromstring(xml)
    assert suite.attrib["failures"] == "1"
    assert [one.attrib["message"] for one in suite.iter("failure")] == ["mean score low"]


def test_hostile_text_is_written_out() -> None:
    seen = Observation(text=HOSTILE)
    bad = result(HOSTILE, 0.1, "failed", reasons=(HOSTILE,), failed_checks=("score",), answer=seen)
    told = msgspec.structs.replace(run().served, model=HOSTILE)
    xml = junit_xml([outcome(bad, served=told)])
    assert not any(byte in xml for byte in (b"\x00", b"\x1b"))
    (suite,) = ElementTree.fromstring(xml)
    name = suite.findall("testcase")[1].attrib["name"]
    # A line feed in an attribute is escaped, so it is read as it was.
    assert name == "]]><a b='\"&\\x00\\x1b[31m\\ud800\\ufffe\u202e\n"
    failure = suite.find("testcase/failure")
    assert failure is not None and failure.text is not None
    assert "]]><a b='\"&\\x00\\x1b[31m" in failure.text
