"""Do both sides read the same tokens? If not, no token-level number says anything of the quantization."""

from __future__ import annotations

from compare.doctor.check import Check, fail, ok, unknown, warn
from compare.doctor.endpoint import PROMPTS, Facts
from ingest.endpoint import Endpoint
from ingest.errors import EndpointAwayError
from ingest.llama_cpp import LlamaCpp
from ingest.vllm import Vllm

_TEXTS = ("The quick brown fox, 1234567890.", "naïve 错误码 🙂 x₂", '{"key": [1, 2.5, null]}\n\tdef f(x):')


async def read_texts(endpoint: Endpoint, model: str, facts: Facts) -> None:
    """Have the server tokenize some texts, where it can; note the ids in `facts`."""
    for text in _TEXTS:
        try:
            ids = await LlamaCpp(endpoint).tokenize(text, is_prompt=False)
            if ids is None:
                ids = await Vllm(endpoint).text_ids(text, model=model)
        except EndpointAwayError:
            return
        if ids is None:
            return
        facts.text_tokens[text] = tuple(ids)


def check_sides(reference: str, candidate: str, a: Facts, b: Facts) -> list[Check]:
    """Compare what two endpoints made of the same texts and chats."""
    where = f"{reference} and {candidate}"
    return [_tokenizer(where, a, b), _template(where, a, b)]


def _tokenizer(where: str, a: Facts, b: Facts) -> Check:
    name = f"{where}: tokenizer"
    both = a.text_tokens.keys() & b.text_tokens.keys()
    if not both:
        return unknown(name, "one of the two has no route that tokenizes; prompt tokens are compared instead")
    different = [text for text in _TEXTS if text in both and a.text_tokens[text] != b.text_tokens[text]]
    if different:
        advice = "use two builds of the same model: tokens are compared by id"
        return fail(name, f"other token ids for {different[0]!r}", advice)
    return ok(name, f"the same ids for {len(both)} texts")


def _template(where: str, a: Facts, b: Facts) -> Check:
    name = f"{where}: chat template"
    counts = [(what, a.prompt_tokens.get(what), b.prompt_tokens.get(what)) for what, _ in PROMPTS]
    known = [(what, left, right) for what, left, right in counts if left is not None and right is not None]
    if not known:
        advice = "without prompt_tokens on both sides, different prompts are not noticed"
        return warn(name, "a side reports no prompt_tokens", advice)
    for what, left, right in known:
        if left != right:
            advice = "such pairs are unscored (prompt_differs): give both servers the same chat template"
            return fail(name, f"{what}: {left} prompt tokens against {right}", advice)
    return ok(name, f"the same number of prompt tokens for {len(known)} chats")
