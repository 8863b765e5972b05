"""Cases, runs and answers that the tests of golden sets share."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from compare.golden.case import Expected, GoldenCase
from compare.golden.run import GoldenRun, Totals
from compare.golden.score import CaseResult, Status
from ingest.served import Served


def body(content: str = "Say something.", **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": content}], **more}


def case(case_id: str = "c1", text: str | None = "fine answer", **more: Any) -> GoldenCase:
    more.setdefault("body", body(f"Question {case_id}"))
    if text is not None:
        more.setdefault("expected", Expected(text, finish_reason="stop"))
        more.setdefault("expected_by", "given")
    return GoldenCase(case_id=case_id, **more)


def result(
    case_id: str = "c1", score: float | None = 1.0, status: Status = "passed", **more: Any
) -> CaseResult:
    values = {"case_hash": "h"} | more
    return CaseResult(case_id=case_id, status=status, score=score, **values)


def run(number: int = 0, mean: float | None = 0.9, **more: Any) -> GoldenRun:
    """Run `number` began so many hours after a fixed day at noon (of this year)."""
    noon = datetime.now(UTC).replace(month=6, day=1, hour=12, minute=0, second=0, microsecond=0)
    began = noon + timedelta(hours=number)
    totals = Totals(
        cases=4, answered_cases=4, passed_cases=3, exact_rate=0.5, mean_score=mean, extraction_accuracy=None,
        faulty_rate=0.25,
    )  # fmt: skip
    values: dict[str, Any] = {
        "set_name": "s",
        "run_id": f"run{number:04d}",
        "set_hash": "sh",
        "experiment": "e",
        "settings_hash": "st",
        "role": "candidate",
        "endpoint_name": "cand",
        "started_by": "schedule",
        "started_at": began,
        "finished_at": began + timedelta(minutes=1),
        "status": "passed",
        "reasons": (),
        "totals": totals,
        "least_mean_score": 0.85,
        "served": Served(model="m", quantization="Q8_0"),
        "served_hash": "v1",
    }
    return GoldenRun(**values | more)
