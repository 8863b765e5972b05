"""Replay: one mirrored request becomes one response pair for each candidate."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from ingest.admission import Priority, begin_turn
from ingest.endpoint import Endpoint
from ingest.errors import DeadLetterError, EndpointAwayError, SettingsError
from ingest.forced import ForcedScorer
from ingest.llama_cpp import vocabulary_size
from ingest.observation import Observation
from ingest.outcome import Skipped, SkipReason
from ingest.pair import Forced, Mode, ReplayPlan, ResponsePair
from ingest.records import MirroredRequest
from ingest.reference_answers import (
    AnswerRole,
    KnownAnswer,
    KnowsAnswers,
    ReferenceAnswer,
    asked_hash,
)
from ingest.replay_body import ReplayBody, replay_body
from ingest.replay_plan import asked_model, plan_for
from ingest.settings import EndpointSettings, ExperimentSettings, endpoint_names
from ingest.vllm import Vllm

_T = TypeVar("_T")

_Call = tuple[str, int]
"""Endpoint name, and 0 for its first observation or 1 for its second (noise)."""


class Replayer:
    """Asks the reference and the candidates of one experiment. `start` it first, `close` it last."""

    def __init__(
        self,
        experiment: ExperimentSettings,
        endpoints: Mapping[str, EndpointSettings],
        *,
        keeps_answers: bool = False,
        known: KnowsAnswers | None = None,
    ) -> None:
        """`keeps_answers`: pairs say what names the reference's answers, so that they can be kept.

        Answers that are `known` are not asked for. Raises SettingsError if the experiment names an
        endpoint that is not configured.
        """
        self._experiment = experiment
        self._keeps_answers = keeps_answers
        self._known = known
        names = endpoint_names(experiment)
        for name in names:
            if name not in endpoints:
                configured = ", ".join(sorted(endpoints)) or "none"
                raise SettingsError(
                    f'experiment "{experiment.name}" names the endpoint "{name}", which is not '
                    f"configured (configured: {configured})"
                )
        self.endpoints = {name: Endpoint(name, endpoints[name]) for name in names}
        """By name, the reference first."""
        self._scorers = {
            name: ForcedScorer(
                self.endpoints[name],
                max_tokens=experiment.forced_max_tokens,
                max_prompt_tokens=experiment.forced_max_prompt_tokens,
            )
            for name in names
        }
        self._vocabulary: dict[str, int | None] = {}
        self._is_reference_vllm: bool | None = None

    async def start(self) -> None:
        """Open the sessions. Nothing is sent: an endpoint may still be starting."""
        for endpoint in self.endpoints.values():
            await endpoint.start()

    async def close(self) -> None:
        """Close the sessions."""
        for endpoint in self.endpoints.values():
            await endpoint.close()

    def rest(self) -> None:
        """The service ends: wait for no pause and no breaker any longer; `replay` then raises."""
        for endpoint in self.endpoints.values():
            endpoint.admission.rest()

    def skip_for(self, mirrored: MirroredRequest) -> Skipped | None:
        """Say whether the model map lacks the request's model for one of the sides."""
        for name in self.endpoints:
            if asked_model(self._experiment, mirrored.served_model, name) is None:
                return Skipped(
                    SkipReason.MODEL,
                    f'no model of endpoint "{name}" is mapped to "{mirrored.served_model}"',
                )
        return None

    async def replay(self, mirrored: MirroredRequest) -> tuple[ResponsePair, ...]:
        """Ask every side and return one pair for each candidate, in the order of the settings.

        The reference is asked once for all candidates. Who is replayed first goes first everywhere. Waits
        while a side is paused. Raises EndpointAwayError when a side is away, BudgetError before anything is
        asked when the tokens of one are used up, FatalError when one refuses our credentials, DeadLetterError
        (`model`) where `skip_for` should have been asked.
        """
        skipped = self.skip_for(mirrored)
        if skipped is not None:
            raise DeadLetterError("model", skipped.detail)
        begin_turn()
        experiment = self._experiment
        plans = {name: plan_for(mirrored, experiment, name) for name in experiment.candidates}
        shared = plans[experiment.candidates[0]]
        again: _Call = (experiment.reference_b or experiment.reference, 1)
        calls: list[_Call] = [(name, 0) for name in (experiment.reference, *experiment.candidates)]
        if shared.wants_noise:
            calls.append(again)
        # A second reference may be a candidate too: one call serves both.
        calls.extend(
            (name, 1) for name, plan in plans.items() if plan.wants_candidate_noise and (name, 1) not in calls
        )
        # Neither side shall profit from always going first.
        random.Random(f"{experiment.seed} {mirrored.request_id}").shuffle(calls)
        answers = self._reference_answers(mirrored, shared, again, calls)
        known = await self._known_answers(mirrored, answers, plans)
        calls = [call for call in calls if call not in known]
        asked = dict.fromkeys(name for name, _ in calls)
        for name in asked:
            await self.endpoints[name].ready()
        for name in asked:
            self.endpoints[name].budget.check()
        needs_ids = experiment.reference in asked and await self._needs_ids(plans)
        bodies = {
            call: self._body(
                mirrored, shared, call, wants_token_ids=needs_ids and call[0] == experiment.reference
            )
            for call in (*calls, *known)
        }
        seen = {call: answer.observation for call, answer in known.items()}
        # A side whose breaker is open is asked alone: no other shall compute for a record that may fail.
        doubtful = [call for call in calls if self.endpoints[call[0]].admission.breaker.is_open]
        for group in (doubtful, [call for call in calls if call not in doubtful]):
            told = await _all(self._ask(call, bodies[call], mirrored.endpoint) for call in group)
            seen.update(zip(group, told, strict=True))
        first_known = known.get((experiment.reference, 0))
        size = first_known.vocabulary_size if first_known is not None else await self._vocabulary_size()
        forced_again = None
        if again in seen and shared.wants_forced:
            first = seen[experiment.reference, 0]
            forced_again = await self._forced(mirrored, again[0], bodies[again].body, first, seen[again])
        pairs = await _all(
            self._pair(mirrored, name, plan, bodies, seen, size) for name, plan in plans.items()
        )
        return tuple(
            msgspec.structs.replace(
                pair,
                reference_again=seen.get(again),
                reference_again_name=experiment.reference_b,
                forced_again=forced_again,
                reference_answers=tuple(
                    msgspec.structs.replace(answer, is_reused=call in known)
                    for call, answer in answers.items()
                    if self._keeps_answers or call in known
                ),
            )
            for pair in pairs
        )

    async def ask_golden(self, mirrored: MirroredRequest, name: str) -> tuple[ReplayBody, Mode, Observation]:
        """Ask one endpoint alone, before all mirrored traffic that waits for it, within the same limits.

        Greedily, unless the settings rule that out for all requests. A paused endpoint is not waited for:
        it counts as away. Raises EndpointAwayError, BudgetError before anything is asked, FatalError when
        the endpoint refuses our credentials, DeadLetterError (`model`) where the map has no model for it.
        """
        endpoint = self.endpoints[name]
        if asked_model(self._experiment, mirrored.served_model, name) is None:
            raise DeadLetterError(
                "model", f'no model of endpoint "{name}" is mapped to "{mirrored.served_model}"'
            )
        if endpoint.admission.is_paused:
            raise EndpointAwayError(f'endpoint "{name}" is paused by command')
        endpoint.budget.check()
        mode = Mode.GREEDY if self._experiment.greedy_fraction > 0 else Mode.AS_SENT
        body = self._body(mirrored, ReplayPlan(mode, False, False, False), (name, 0), wants_token_ids=False)
        return body, mode, await endpoint.ask(body.body, mirrored.endpoint, Priority.GOLDEN)

    def _reference_answers(
        self, mirrored: MirroredRequest, plan: ReplayPlan, again: _Call, calls: list[_Call]
    ) -> dict[_Call, ReferenceAnswer]:
        """What names the reference's answers among these calls."""
        if not self._keeps_answers and self._known is None:
            return {}
        named: dict[_Call, ReferenceAnswer] = {}
        roles: tuple[tuple[_Call, AnswerRole], ...] = (
            ((self._experiment.reference, 0), "reference"),
            (again, "reference_again"),
        )
        for call, role in roles:
            # One that is a candidate too answers as the candidate, which is always asked.
            if call in calls and call[0] not in self._experiment.candidates:
                url = self.endpoints[call[0]].settings.url
                body = self._body(mirrored, plan, call, wants_token_ids=False).body
                named[call] = ReferenceAnswer(role, asked_hash(url, mirrored.endpoint, role, body), False)
        return named

    async def _known_answers(
        self,
        mirrored: MirroredRequest,
        answers: Mapping[_Call, ReferenceAnswer],
        plans: Mapping[str, ReplayPlan],
    ) -> dict[_Call, KnownAnswer]:
        """Those of the reference's answers that need not be asked for."""
        known: dict[_Call, KnownAnswer] = {}
        if self._known is None:
            return known
        for call, answer in answers.items():
            found = self._known.find(mirrored.position, answer.role, answer.asked_hash)
            if found is not None:
                known[call] = found
        first = known.get((self._experiment.reference, 0))
        has_all_ids = first is None or all(token.id is not None for token in first.observation.tokens)
        # It may have been asked when nobody needed the ids.
        if not has_all_ids and await self._needs_ids(plans):
            del known[self._experiment.reference, 0]
        return known

    async def _ask(self, call: _Call, body: ReplayBody, path: str) -> Observation:
        name, turn = call
        return await self.endpoints[name].ask(body.body, path, Priority.EXTRA if turn else Priority.FIRST)

    def _body(
        self, mirrored: MirroredRequest, plan: ReplayPlan, call: _Call, *, wants_token_ids: bool
    ) -> ReplayBody:
        name, turn = call
        salt = f"{self._experiment.name} {mirrored.request_id} {name} {turn}"
        model = asked_model(self._experiment, mirrored.served_model, name)
        return replay_body(
            mirrored.body,
            path=mirrored.endpoint,
            mode=plan.mode,
            model=model or "",
            seed=self._experiment.seed,
            top_logprobs=self.endpoints[name].settings.top_logprobs,
            max_tokens_cap=self._experiment.max_tokens_cap,
            cache_salt=hashlib.sha256(salt.encode("utf-8", "replace")).hexdigest()
            if plan.wants_noise
            else None,
            wants_token_ids=wants_token_ids,
        )

    async def _pair(
        self,
        mirrored: MirroredRequest,
        name: str,
        plan: ReplayPlan,
        bodies: dict[_Call, ReplayBody],
        seen: dict[_Call, Observation],
        vocabulary: int | None,
    ) -> ResponsePair:
        reference = seen[self._experiment.reference, 0]
        candidate = seen[name, 0]
        sent = bodies[name, 0]
        counts = reference.prompt_tokens, candidate.prompt_tokens
        return ResponsePair(
            mirrored=mirrored,
            experiment=self._experiment.name,
            reference_name=self._experiment.reference,
            candidate_name=name,
            reference_body=bodies[self._experiment.reference, 0].body,
            candidate_body=sent.body,
            plan=msgspec.structs.replace(plan, changes=sent.changes),
            reference=reference,
            candidate=candidate,
            candidate_again=seen.get((name, 1)),
            forced=await self._forced(mirrored, name, sent.body, reference, candidate)
            if plan.wants_forced
            else None,
            vocabulary_size=vocabulary,
            prompt_differs=None not in counts and counts[0] != counts[1],
        )

    async def _forced(
        self,
        mirrored: MirroredRequest,
        name: str,
        body: dict[str, Any],
        reference: Observation,
        candidate: Observation,
    ) -> Forced:
        return await self._scorers[name].score(body, mirrored.endpoint, reference, candidate)

    async def _needs_ids(self, plans: Mapping[str, ReplayPlan]) -> bool:
        """Whether the reference must be asked for token ids: vLLM tells them only then.

        Other engines tell them always or never, and some refuse a key that they do not know.
        """
        may_force = any(
            plan.wants_forced and self.endpoints[name].settings.supports_forced is not False
            for name, plan in plans.items()
        )
        if may_force and self._is_reference_vllm is None:
            reference = Vllm(self.endpoints[self._experiment.reference])
            self._is_reference_vllm = await reference.version() is not None
        return may_force and self._is_reference_vllm is True

    async def _vocabulary_size(self) -> int | None:
        """Return the reference's vocabulary size, asked for once; None where the server does not say."""
        name = self._experiment.reference
        if name not in self._vocabulary:
            try:
                self._vocabulary[name] = await vocabulary_size(self.endpoints[name])
            except EndpointAwayError:
                # The answers are there; an upper bound of entropy less is no reason to ask them again.
                return None
        return self._vocabulary[name]


async def _all(calls: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """Await all together. The first error cancels the rest, waits for their end, and is raised."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
