"""oga.LLM: lists in, lists out, in the same order, whatever happens to one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from driving import generate

import oga

CHATS = [[{"role": "user", "content": text}] for text in ("the end", "again")]


def test_results_come_in_the_order_of_the_prompts(model: oga.Model) -> None:
    prompts = [[number + 3] * (40 - 2 * number) for number in range(20)]
    with oga.Engine(model) as engine:
        wanted = [generate(engine, prompt, 1 + number % 7) for number, prompt in enumerate(prompts)]
    with oga.LLM(model) as llm:
        results = llm.generate(prompts, max_new_tokens=7)
        assert [result.token_ids[: len(tokens)] for result, tokens in zip(results, wanted, strict=True)] == wanted
        assert all(result.error is None for result in results)
        statistics = llm.engine.get_statistics()
        assert statistics.rows > 2 * statistics.steps
        assert statistics.free_blocks == statistics.total_blocks
        assert statistics.live_requests == 0


def test_one_failing_prompt_does_not_lose_the_others(poisoned_folder: Path) -> None:
    with oga.LLM(poisoned_folder) as llm:
        good = llm.generate([[5]], max_new_tokens=8)[0]
        results = llm.generate([[5], [300], [], [5, 512], [5]], max_new_tokens=8)
    assert [type(result.error) for result in results] == [
        type(None),
        oga.ModelError,
        oga.InvalidArgumentError,
        oga.InvalidArgumentError,
        type(None),
    ]
    assert results[0].text == results[4].text == good.text
    assert [result.finish_reason is oga.FinishReason.FAILED for result in results] == [False, True, True, True, False]


def test_texts_messages_and_ids_may_stand_in_one_list(model: oga.Model) -> None:
    with oga.LLM(model) as llm:
        mixed = llm.generate(["the end", CHATS[0], [5, 6]], max_new_tokens=4)
        assert [result.text for result in mixed] == [
            llm.generate("the end", max_new_tokens=4)[0].text,
            llm.chat(CHATS[0], max_new_tokens=4).text,
            llm.generate([[5, 6]], max_new_tokens=4)[0].text,
        ]
        assert [result.text for result in llm.chat(CHATS, max_new_tokens=4)] == [
            llm.chat(chat, max_new_tokens=4).text for chat in CHATS
        ]


def test_what_is_not_a_list_of_prompts_is_refused(model: oga.Model) -> None:
    with oga.LLM(model) as llm:
        with pytest.raises(oga.ArgumentTypeError, match="list of their own"):
            llm.generate([5, 6])  # type: ignore[list-item]
        with pytest.raises(oga.ArgumentTypeError, match="chat"):
            llm.generate(CHATS[0])  # type: ignore[arg-type]
        with pytest.raises(oga.ArgumentTypeError, match=r"messages\[0\]"):
            llm.chat(["hello"])  # type: ignore[list-item]
        with pytest.raises(oga.ArgumentTypeError, match="no keyword 'max_tokens'"):
            llm.generate(["the end"], max_tokens=4)  # type: ignore[call-arg]
        with pytest.raises(oga.InvalidArgumentError):
            llm.chat([{"role": "user", "content": "x" * 10_000}])
        assert llm.generate([]) == []
    with pytest.raises(oga.ArgumentTypeError, match="loaded"):
        oga.LLM(model, config={"search": {}})


def test_a_config_changes_what_is_loaded(tiny_folder: Path) -> None:
    with oga.LLM(tiny_folder, config={"engine": {"dynamic_batching": {"max_batch_size": 2}}}) as llm:
        assert llm.engine.get_capabilities().configured_max_batch_size == 2
        loaded = llm.model
    assert loaded.closed


def test_a_bar_is_drawn_when_it_is_wanted(tiny_folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with oga.LLM(tiny_folder) as llm:
        llm.generate(["the end"] * 3, max_new_tokens=2)
        assert capfd.readouterr().err == ""
        llm.generate(["the end"] * 3, max_new_tokens=2, progress=True)
        assert "3/3" in capfd.readouterr().err


def test_an_interrupt_leaves_a_usable_object(model: oga.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from oga.turns import Turns

    with oga.LLM(model) as llm:
        with monkeypatch.context() as patched:
            patched.setattr(Turns, "step", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                llm.generate([[5], [6]], max_new_tokens=3)
        assert llm.engine.get_statistics().live_requests == 0
        assert len(llm.generate([[5]], max_new_tokens=3, min_new_tokens=3)[0].token_ids) == 3


def test_importing_oga_does_not_import_asyncio() -> None:
    script = "import sys, oga; oga.Engine; oga.LLM; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
