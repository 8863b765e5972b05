"""`[rollback]`: what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.errors import SettingsError
from ingest.load_settings import load_settings
from ingest.settings_rollback import SHIPPED_RULES, RollbackPage, RollbackRule, RollbackSettings, rules_of

SETTINGS = """
[experiment]
name = "e"
reference = "full"
candidates = ["small"]
models = {"*" = {full = "m", small = "m-4bit"}}
[endpoints.full]
url = "http://127.0.0.1:1"
[endpoints.small]
url = "http://127.0.0.1:1"
[notify.webhook.pager]
url = "http://127.0.0.1:1/"
"""
RULE = '[[rollback.rules]]\nname = "q"\nmetrics = ["a:b"]\nthreshold = 2.0\n'


def load(folder: Path, text: str, **environ: str) -> RollbackSettings:
    file = folder / "gnomon.toml"
    file.write_text(SETTINGS + text)
    return load_settings(file, environ).rollback


def test_pages_and_rules_are_tables(tmp_path: Path) -> None:
    text = '[rollback]\nsinks = ["pager"]\n[[rollback.pages]]\nendpoint = "small"\nurl = "http://a/metrics"\n'
    found = load(tmp_path, text + RULE + 'when = "<="\nof = "rate"\nlabels = {gpu = "0"}\n')
    assert found.pages == [RollbackPage("small", "http://a/metrics")]
    expected = RollbackRule("q", ["a:b"], 2.0, when="<=", of="rate", labels={"gpu": "0"})
    assert found.rules == [expected]


def test_a_variable_sets_a_key(tmp_path: Path) -> None:
    assert load(tmp_path, "", GNOMON_ROLLBACK_FAULTY_SHARE="0.02").faulty_share == 0.02
    command = load(tmp_path, "", GNOMON_ROLLBACK_APPROVE_COMMAND="/bin/a,--now")
    assert command.approve_command == ["/bin/a", "--now"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            '[[rollback.pages]]\nendpoint = "full"\nurl = "http://a/"\n',
            "rollback.pages.1.endpoint names 'full'; only a candidate is rolled back: small",
        ),
        (
            '[[rollback.pages]]\nendpoint = "small"\nurl = "http://u:p@a/"\n',
            "rollback.pages.1.url holds a user or password; secrets come from the environment only",
        ),
        (RULE + RULE, "rollback.rules.1.name is 'q', which two rules have"),
        (RULE + 'endpoints = ["big"]\n', "rollback.rules.1.endpoints names 'big'; only a candidate"),
        (RULE + 'of = "rate"\nover_s = 60.0\n', "rollback.rules.1.over_s is 60; two looks need 120"),
        (RULE + 'when = "=>"\n', "rollback.rules.1.when is '=>'; it must be one of !=, <, <=, ==, >, >="),
        (RULE + 'of = "mean"\n', "rollback.rules.1.of is 'mean'; it must be one of"),
        ('[rollback]\nwithout_rules = ["xid"]\n', "rollback.without_rules names 'xid', which is not shipped"),
        ('[rollback]\nsinks = ["mail"]\n', "rollback.sinks names 'mail', no sink of [notify]: pager"),
        ("[rollback]\ninterval_s = 1.0\n", "rollback.interval_s is 1.0; it must be a number, at least 5"),
    ],
)
def test_refusals(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as raised:
        load(tmp_path, text)
    assert problem in str(raised.value)


def test_a_rule_of_the_same_name_takes_the_place_of_a_shipped_one(tmp_path: Path) -> None:
    found = load(tmp_path, '[rollback]\nwithout_rules = ["gpu-xid"]\n' + RULE.replace('"q"', '"restarts"'))
    names = [rule.name for rule in rules_of(found)]
    assert names == ["health-failed", "kv-cache-full", "preemptions", "restarts"]
    assert {"gpu-xid", "restarts"} < {rule.name for rule in SHIPPED_RULES}
