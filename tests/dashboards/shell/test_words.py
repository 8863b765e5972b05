"""The words: both languages whole, the same places to fill in, none missing and none left over."""

from __future__ import annotations

import ast
import re
import string
from pathlib import Path

import pytest

import dashboards
from compare.recipes import shipped_recipes
from dashboards.words import TEXTS, Words, language_of
from dashboards.words.recipes import CHINESE

ROOT = Path(dashboards.__file__).parent
SOURCES = {file: file.read_text(encoding="utf-8") for file in sorted(ROOT.rglob("*.py"))}
OURS = {file: text for file, text in SOURCES.items() if file.parent.name != "words"}
STORED = {"warning"}
"""Words that only the store says: a severity."""


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name is not None}


def keys_of(file: Path) -> list[str]:
    (table,) = (
        node.value
        for node in ast.parse(SOURCES[file]).body
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Dict)
    )
    return [ast.literal_eval(key) for key in table.keys if key is not None]


def said() -> tuple[set[str], set[re.Pattern[str]]]:
    """Keys that stand in the code whole, and patterns of those that are put together in it."""
    whole, patterns = set[str](), set[re.Pattern[str]]()
    pages = {key.partition(".")[0] for key in TEXTS}
    for text in OURS.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                whole.add(node.value)
            if isinstance(node, ast.JoinedStr):
                parts = [
                    re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".+"
                    for part in node.values
                ]
                made = "".join(map(str, parts))
                if made.split(r"\.")[0] in pages:
                    patterns.add(re.compile(made))
                elif re.match(r"\w+_", made):
                    # The end of a key whose page is put before it elsewhere.
                    patterns.add(re.compile(rf"\w+\.{made}"))
    # `page.{name}` says nothing of the name: that must stand in the code, or in the store.
    bare = {pattern for pattern in patterns if re.fullmatch(r"\w+\\\.\.\+", pattern.pattern)}
    for key in TEXTS:
        if key.partition(".")[2] in whole | STORED and any(pattern.fullmatch(key) for pattern in bare):
            whole.add(key)
    return whole, patterns - bare


def test_both_languages_say_everything_with_the_same_places() -> None:
    for key, (english, chinese) in TEXTS.items():
        assert english.strip() and chinese.strip(), key
        assert places(english) == places(chinese), key
        # Code, metrics and units may stand alone in both; a sentence may not.
        if len(re.findall(r"[a-z]+", re.sub(r"\{\w+\}|`[^`]*`", "", english))) > 4:
            assert re.search(r"[\u4e00-\u9fff]", chinese), key


def test_no_key_is_twice_in_a_module() -> None:
    for file in (ROOT / "words").glob("*.py"):
        if file.stem != "__init__":
            keys = keys_of(file)
            assert sorted(keys) == sorted(set(keys)), file.name


def test_every_recipe_has_its_question_in_chinese() -> None:
    assert set(shipped_recipes()) == set(CHINESE)


def test_every_text_that_is_said_exists() -> None:
    missing = []
    for file, text in OURS.items():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name in ("say", "_say") and node.args[0].value not in TEXTS:
                    missing.append((file.name, node.args[0].value))
    assert missing == []


def test_no_text_is_left_over() -> None:
    whole, patterns = said()
    left = [
        key for key in TEXTS if key not in whole and not any(pattern.fullmatch(key) for pattern in patterns)
    ]
    assert left == []


def test_a_missing_value_or_key_is_an_error_and_the_language_follows_the_browser() -> None:
    say = Words("zh")
    assert say("shell.up_to", time="03:00").startswith("数字统计到 03:00")
    with pytest.raises(KeyError):
        say("shell.up_to", other=1)
    with pytest.raises(KeyError):
        say("shell.nowhere")
    spoken = [language_of(one) for one in ("zh-CN", "ZH", "en-GB", "de", None)]
    assert spoken == ["zh", "zh", "en", "en", "en"]
