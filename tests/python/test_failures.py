"""Why a turn failed reaches every Python interface by value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asyncs import asynchronous
from failing import CASES, DEAD_END, Case
from tiny_models import LIMITS

import oga
from oga.failures import OF_THE_ENGINE, turn_error

CONFIG = {"engine": {"dynamic_batching": LIMITS}}
BY_KIND = pytest.mark.parametrize("case", CASES, ids=lambda case: case.kind.name)
Folders = Callable[[Case], Path]


@pytest.fixture
def folder_of(
    tiny_folder: Path, poisoned_folder: Path, failing_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Folders:
    folders = {"tiny": tiny_folder, "poisoned": poisoned_folder, "failing": failing_folder}

    def prepared(case: Case) -> Path:
        case.prepare(monkeypatch)
        return folders[case.model]

    return prepared


def settings_of(case: Case, model: oga.Model) -> Any:
    if not case.dead_end:
        return {"max_new_tokens": 6}
    return DEAD_END | {"stop_tokens": [model.tokenizer.to_token_id(letter) for letter in "ok"]}


def check(error: object, case: Case) -> None:
    kind = oga.EngineUnhealthyError if case.takes_the_engine else oga.ModelError
    assert type(error) is kind
    assert isinstance(error, oga.OgaError)
    assert error.failure is case.kind
    assert error.field == ("guidance" if case.kind is oga.FailureKind.GRAMMAR_FAILED else None)


@BY_KIND
def test_a_stream_says_why_it_failed(folder_of: Folders, case: Case) -> None:
    with oga.Config(folder_of(case)) as config:
        config.overlay(CONFIG)
        with oga.Model(config) as model, oga.Engine(model) as engine:
            stream = engine.stream(case.prompt, **settings_of(case, model))
            with pytest.raises(oga.OgaError) as raised:
                list(stream)
            check(raised.value, case)
            assert stream.error is raised.value
            assert stream.finish_reason is oga.FinishReason.FAILED


@BY_KIND
def test_the_event_of_a_failed_turn_has_the_kind(folder_of: Folders, case: Case) -> None:
    with oga.Model(folder_of(case)) as model, oga.Engine(model) as engine:
        request = engine.create_request()
        settings = settings_of(case, model)
        words = {"max_new_tokens": "max_generated_tokens", "min_new_tokens": "min_generated_tokens"}
        options = oga.TurnOptions(request, **{words.get(name, name): value for name, value in settings.items()})
        request.begin_turn(case.prompt, options)
        kinds = []
        with engine.create_event_buffer(4) as buffer:
            while engine.has_pending_requests():
                kinds += [(event.failure, event.finish_reason) for event in engine.run(buffer)]
        assert kinds[-1] == (case.kind, oga.FinishReason.FAILED)
        assert {kind for kind, _ in kinds[:-1]} <= {oga.FailureKind.NONE}


@BY_KIND
def test_a_result_of_a_list_says_why_it_failed(folder_of: Folders, case: Case) -> None:
    with oga.LLM(folder_of(case), config=CONFIG) as llm:
        if case.takes_the_engine:
            with pytest.raises(oga.EngineUnhealthyError) as raised:
                llm.generate([case.prompt])
            assert raised.value.failure is None  # the call failed, not one turn of it
            return
        result = llm.generate([case.prompt], **settings_of(case, llm.model))[0]
        assert result.finish_reason is oga.FinishReason.FAILED
        check(result.error, case)
        assert llm.generate([[5, 6]], max_new_tokens=3)[0].error is None


@BY_KIND
@asynchronous
async def test_an_asynchronous_turn_says_why_it_failed(folder_of: Folders, case: Case) -> None:
    async with oga.AsyncEngine(folder_of(case), config=CONFIG) as engine:
        settings = settings_of(case, engine.model)
        with pytest.raises(oga.OgaError) as raised:
            await engine.generate(case.prompt, **settings)
        check(raised.value, case)
        if case.takes_the_engine:
            assert "short_lookup" in str(raised.value)
            with pytest.raises(oga.EngineUnhealthyError) as later:
                await engine.generate([5])
            assert later.value.failure is None  # it never began
            assert raised.value.__cause__ is engine.error


@BY_KIND
@asynchronous
async def test_a_turn_of_a_conversation_says_why_it_failed(folder_of: Folders, case: Case) -> None:
    async with oga.AsyncEngine(folder_of(case), config=CONFIG) as engine, engine.open_conversation() as conversation:
        await conversation.generate([5, 6], max_new_tokens=2)
        with pytest.raises(oga.OgaError) as raised:
            await conversation.generate(case.prompt, **settings_of(case, engine.model))
        check(raised.value, case)
        assert len(conversation.turns) == 1


def test_every_kind_is_a_case_and_has_words_of_its_own() -> None:
    kinds = set(oga.FailureKind) - {oga.FailureKind.NONE}
    assert {case.kind for case in CASES} == kinds
    errors = [turn_error(kind) for kind in kinds]
    assert len({str(error) for error in errors}) == len(kinds)
    for kind, error in zip(kinds, errors, strict=True):
        assert (kind in OF_THE_ENGINE) == isinstance(error, oga.EngineUnhealthyError)
