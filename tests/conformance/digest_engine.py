"""Lets an engine answer the requests of the digest, all of them at once, and keeps what its events say."""

from __future__ import annotations

import contextlib
import hashlib
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from digest_requests import Plan, Turn, draw_plans

import oga
from oga.logprobs import TokenLogprobs

# Chunks, rows and a cache too small for everybody: all of it decides when something is computed, none of it what.
USUAL: dict[str, int] = {"max_batch_size": 16, "max_scheduled_tokens": 96, "num_blocks": 96, "chunk_size": 40}
UNUSUAL: dict[str, int] = {"max_batch_size": 3, "max_scheduled_tokens": 17, "num_blocks": 64, "chunk_size": 5}


@dataclass
class Said:
    """What one turn said."""

    turn: Turn
    tokens: list[int] = field(default_factory=list)
    text: str = ""
    ending: oga.FinishReason = oga.FinishReason.NONE
    stop_string: int | None = None
    logprobs: list[TokenLogprobs | None] = field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs | None] | None = None

    @property
    def may_go_on(self) -> bool:
        """Whether the request may have another turn."""
        return self.ending not in (oga.FinishReason.FAILED, oga.FinishReason.MAX_SESSION_TOKENS)

    def clear_tokens(self, gap: float) -> list[int]:
        """The tokens until the first one that a small difference in the arithmetic could turn into another."""
        clear = []
        if self.turn.greedy and self.turn.processed_logprobs:
            for token, logprobs in zip(self.tokens, self.logprobs, strict=False):
                if logprobs is None or self.turn.settings.get("logprobs", 0) < 2:
                    break
                best, *others = logprobs.alternatives
                if others and best.logprob - others[0].logprob < gap:
                    break
                clear.append(token)
        return clear


Answer = list[Said]
Waiting = list[tuple[oga.Request, int]]


def token_hash(answer: Answer) -> str:
    """Of the tokens of all turns, their text and their endings."""
    parts = [(said.tokens, said.text, said.ending.name, said.stop_string) for said in answer]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]


def logprob_hash(answer: Answer) -> str:
    """Of the log-probabilities of all turns, each as the bits of a float, with their tokens and ranks."""
    digest = hashlib.sha256()
    for said in answer:
        for part in (said.prompt_logprobs or [], said.logprobs):
            digest.update(struct.pack("<i", len(part)))
            for place in part:
                rows = [] if place is None else [place[:3], *place.alternatives]
                digest.update(struct.pack("<i", len(rows)) + b"".join(struct.pack("<ifi", *row) for row in rows))
    return digest.hexdigest()[:12]


@contextlib.contextmanager
def loaded(folder: Path, chunk_size: int, threads: int | None = None, **limits: int) -> Iterator[oga.Model]:
    """The model with these limits."""
    decoder = {"session_options": {"intra_op_num_threads": threads}} if threads else {}
    with oga.Config(folder) as config:
        config.overlay(
            {
                "model": {"decoder": decoder},
                "search": {"chunk_size": chunk_size},
                "engine": {"dynamic_batching": {"block_size": 16} | limits},
            }
        )
        with oga.Model(config) as model:
            yield model


def answers_of(folder: Path, indices: Sequence[int] | None = None, **limits: int) -> dict[int, Answer]:
    """What the requests, or those with these indices, say when they all start together."""
    with loaded(folder, **(USUAL | limits)) as model, oga.Engine(model) as engine:
        plans = draw_plans(model.tokenizer, model.chat_template)
        return Performance(engine).of([plan for plan in plans if indices is None or plan.index in indices])


class Performance:
    """Runs an engine until every request has done what its plan says."""

    def __init__(self, engine: oga.Engine) -> None:
        self.engine = engine
        self.said: dict[tuple[oga.Request, int], Said] = {}
        self.answers: dict[int, Answer] = {}

    def of(self, plans: list[Plan]) -> dict[int, Answer]:
        """The answers to these, by index."""
        stories = [self.perform(plan) for plan in plans]
        waiting = [(story, next(story)) for story in stories]
        with self.engine.create_event_buffer(1024) as buffer:
            while waiting:
                for event in self.engine.run(buffer):
                    self.note(event)
                waiting = [entry for story, turns in waiting for entry in self.resumed(story, turns)]
        return self.answers

    def resumed(self, story: Iterator[Waiting], turns: Waiting) -> Iterator[tuple[Iterator[Waiting], Waiting]]:
        """The story with the turns that it waits for next; nothing when it is over."""
        if any(self.said[turn].ending is oga.FinishReason.NONE for turn in turns):
            yield story, turns
        elif (following := next(story, None)) is not None:
            yield story, following

    def note(self, event: oga.EngineEvent) -> None:
        """Keeps what an event says, and cancels the turn when its time has come."""
        if event.request is None:
            assert not event.flags & oga.EngineEventFlags.FAILED, event
            return
        said = self.said[event.request, event.turn_id]
        if event.token is not None:
            said.tokens.append(event.token)
            said.logprobs.append(event.logprobs)
        said.text += event.text
        said.prompt_logprobs = said.prompt_logprobs or event.prompt_logprobs
        if event.finish_reason is not oga.FinishReason.NONE:
            said.ending = event.finish_reason
            said.stop_string = event.matched_stop_string_index
        elif said.turn.cancel_after == len(said.tokens) > 0:
            event.request.cancel_turn(event.turn_id)

    def begin(self, plan: Plan, request: oga.Request, turn: Turn) -> tuple[oga.Request, int]:
        """Begins a turn; what it says is the next part of the answer."""
        settings: dict[str, Any] = dict(turn.settings)
        with oga.TurnOptions(request, **settings) as options:
            if turn.processed_logprobs and "logprobs" in settings:
                options.set_logprobs(settings["logprobs"], processed=True)
            if turn.special_text and "emit_text" in settings:
                options.set_emit_text(settings["emit_text"], include_special_tokens=True)
            turn_id = request.begin_turn(turn.prompt, options)
        said = self.said[request, turn_id] = Said(turn)
        self.answers.setdefault(plan.index, []).append(said)
        return request, turn_id

    def perform(self, plan: Plan) -> Iterator[Waiting]:
        """Does what a plan says; yields the turns whose end it waits for."""
        with (
            oga.RequestOptions(**plan.options) as options,
            self.engine.create_request(options=options) as request,
        ):
            yield [self.begin(plan, request, plan.turns[0])]
            if not all(said.may_go_on for said in self.answers[plan.index]):
                return
            yield from getattr(self, f"go_on_{plan.shape}")(plan, request)

    def go_on_single(self, plan: Plan, request: oga.Request) -> Iterator[Waiting]:
        """One turn is all."""
        yield from ()

    def go_on_continued(self, plan: Plan, request: oga.Request) -> Iterator[Waiting]:
        """A second turn follows; its draws may continue the seed of the first."""
        yield [self.begin(plan, request, plan.turns[1])]

    go_on_cancelled = go_on_continued

    def go_on_rewound(self, plan: Plan, request: oga.Request) -> Iterator[Waiting]:
        """A second turn is taken back, and another one takes its place."""
        second = self.begin(plan, request, plan.turns[1])
        yield [second]
        request.rewind_to_start_of_turn(second[1])
        yield [self.begin(plan, request, plan.turns[2])]

    def go_on_forked(self, plan: Plan, request: oga.Request) -> Iterator[Waiting]:
        """Two turns go on from the same place at the same time."""
        with request.fork() as other:
            yield [self.begin(plan, request, plan.turns[1]), self.begin(plan, other, plan.turns[2])]
