"""Does the text encoder tell texts of one meaning from texts of another?"""

from __future__ import annotations

from compare.doctor.check import Check, fail, ok, warn
from compare.metrics.embedding import TextEncoder
from ingest.errors import SettingsError

_ALIKE = (
    ("The order will arrive on Tuesday.", "Your parcel is going to be delivered on Tuesday."),
    ("He closed the window because it was cold.", "As it was chilly, he shut the window."),
    ("The function returns an empty list.", "An empty list is what the function gives back."),
    ("Paris is the capital of France.", "France's capital city is Paris."),
)
_CHINESE = ("订单将于星期二送达。", "你的包裹会在周二送到。")

LARGEST_SHUFFLED = 0.5
"""Sentences that have nothing to do with each other score 0.0 to 0.25 with the packaged model."""


def check_encoder(model: str) -> list[Check]:
    """Encode pairs of one meaning, and the same shuffled. `model` is `compare.embedding_model`."""
    name = "encoder: cosine"
    if not model:
        return [warn(name, "off", "set compare.embedding_model, or accept that cosines are unscored")]
    firsts, seconds = zip(*_ALIKE, strict=True)
    shuffled = list(zip(firsts, (*seconds[1:], seconds[0]), strict=True))
    try:
        results = TextEncoder(model).encode_pairs([*_ALIKE, *shuffled, _CHINESE])
    except SettingsError as error:
        return [fail(name, str(error), "install it, or name another compare.embedding_model")]
    cosines = [result.cosine for result in results[:-1]]
    known = [cosine for cosine in cosines if cosine is not None]
    if len(known) != len(cosines):
        return [fail(name, "English sentences are unscored", "name another compare.embedding_model")]
    alike, other = min(known[: len(_ALIKE)]), max(known[len(_ALIKE) :])
    seen = f"sentences of one meaning {alike:.2f} and more, shuffled ones {other:.2f} and less ({model})"
    if other > LARGEST_SHUFFLED or other >= alike:
        advice = "this model does not tell texts apart: name another compare.embedding_model"
        return [fail(name, seen, advice)]
    checks = [ok(name, seen)]
    if results[-1].cosine is None:
        advice = "name a multilingual compare.embedding_model if your traffic holds such texts"
        checks.append(warn("encoder: languages", f"Chinese is unscored: {results[-1].unscored}", advice))
    return checks
