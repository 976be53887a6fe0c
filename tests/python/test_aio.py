"""AsyncEngine: any number of tasks over one engine, each of which may leave at any time."""

from __future__ import annotations

import asyncio
import gc
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from asyncs import assert_all_returned, asynchronous, engine_threads, settled
from driving import generate

import oga

CHAT = [{"role": "user", "content": "the end"}]
ENDLESS = {"max_new_tokens": 200, "min_new_tokens": 200}


@asynchronous
async def test_each_kind_of_prompt_gives_what_the_plain_engine_gives(model: oga.Model) -> None:
    with oga.Engine(model) as plain:
        wanted = [
            generate(plain, list(prompt), 9)
            for prompt in ([5, 6, 7], model.tokenizer.encode("the end"), model.chat_template.encode(CHAT))
        ]
    async with oga.AsyncEngine(model) as engine:
        results = [await engine.generate(prompt, max_new_tokens=9) for prompt in ([5, 6, 7], "the end", CHAT)]
    assert [result.token_ids for result in results] == wanted
    assert [result.text for result in results] == [model.tokenizer.decode(tokens) for tokens in wanted]
    assert results[0].finish_reason is oga.FinishReason.MAX_GENERATED_TOKENS
    assert results[0].usage == (3, 9, 0)
    times = results[0].timings
    assert 0 < times.submitted <= times.accepted <= times.first_token <= times.finished


@asynchronous
async def test_streams_that_run_together_add_up_to_what_each_gives_alone(model: oga.Model) -> None:
    prompts = [[number + 3, number + 9] for number in range(20)]
    async with oga.AsyncEngine(model) as engine:
        alone = [await engine.generate(prompt, max_new_tokens=12) for prompt in prompts]

        async def collect(prompt: list[int]) -> tuple[str, list[int]]:
            deltas = [delta async for delta in engine.stream(prompt, max_new_tokens=12)]
            assert [delta.last for delta in deltas] == [False] * (len(deltas) - 1) + [True]
            return "".join(delta.text for delta in deltas), [token for delta in deltas for token in delta.token_ids]

        before = await settled(engine)
        together = await asyncio.gather(*map(collect, prompts))
        after = await settled(engine)
        assert together == [(result.text, result.token_ids) for result in alone]
        assert after.rows - before.rows > after.steps - before.steps
        await assert_all_returned(engine)


@asynchronous
async def test_a_folder_without_a_tokenizer_gives_token_ids(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "bare")
    (folder / "tokenizer.json").unlink()
    async with oga.AsyncEngine(folder) as engine:
        result = await engine.generate([5, 6], max_new_tokens=4, min_new_tokens=4)
        assert (len(result.token_ids), result.text) == (4, "")
        with pytest.raises(oga.MissingFileError, match=r"tokenizer\.json"):
            await engine.generate("the end")


@asynchronous
async def test_log_probabilities_come_with_their_tokens(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        result = await engine.generate([5, 6, 7], max_new_tokens=4, logprobs=2, prompt_logprobs=1)
        assert [each.token for each in result.logprobs] == result.token_ids
        assert result.prompt_logprobs is not None
        assert [each and each.token for each in result.prompt_logprobs] == [None, 6, 7]
        stream = engine.stream([5, 6, 7], max_new_tokens=4, logprobs=2)
        found = [each async for delta in stream for each in delta.logprobs]
        assert found == result.logprobs


@asynchronous
async def test_settings_reach_the_turn(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        drawn = [await engine.generate([5], max_new_tokens=8, temperature=2.0, seed=seed) for seed in (1, 1, 2)]
        assert drawn[0].token_ids == drawn[1].token_ids != drawn[2].token_ids
        limited = await engine.generate([5], min_new_tokens=5, max_session_tokens=6)
        assert limited.finish_reason is oga.FinishReason.MAX_SESSION_TOKENS
        assert len(limited.token_ids) == 5


async def leave_by_break(engine: oga.AsyncEngine) -> None:
    async for _ in engine.stream([5], **ENDLESS):
        break


async def leave_by_aclose(engine: oga.AsyncEngine) -> None:
    async with engine.stream([5], **ENDLESS) as stream:
        await anext(stream)
    assert [delta async for delta in stream] == []


async def leave_by_timeout(engine: oga.AsyncEngine) -> None:
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(engine.stream([5], **ENDLESS).result(), 0.005)


async def leave_by_cancel(engine: oga.AsyncEngine) -> None:
    task = asyncio.create_task(engine.generate([5], **ENDLESS))
    await asyncio.sleep(0.003)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def leave_at_once(engine: oga.AsyncEngine) -> None:
    task = asyncio.create_task(engine.generate("the end", **ENDLESS))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def leave_by_an_error(engine: oga.AsyncEngine) -> None:
    async def divide() -> None:
        async for _ in engine.stream([5], **ENDLESS):
            1 / 0  # noqa: B018

    with pytest.raises(ZeroDivisionError):
        await divide()


LEAVING = [leave_by_break, leave_by_aclose, leave_by_timeout, leave_by_cancel, leave_at_once, leave_by_an_error]


@pytest.mark.usefixtures("slow_steps")
@pytest.mark.parametrize("leave", LEAVING)
@asynchronous
async def test_a_turn_that_is_left_ends_within_a_step(model: oga.Model, leave: Callable[..., Any]) -> None:
    async with oga.AsyncEngine(model) as engine:
        await leave(engine)
        gc.collect()
        await settled(engine)
        # An answered command means that everything left before it is over: no further step works for it.
        steps = (await settled(engine)).steps
        await asyncio.sleep(0.02)
        assert (await settled(engine)).steps == steps
        await assert_all_returned(engine)


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_many_readers_that_leave_in_every_way_give_everything_back(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        await asyncio.gather(*(LEAVING[number % len(LEAVING)](engine) for number in range(60)))
        gc.collect()
        await assert_all_returned(engine)
        assert len((await engine.generate([5], max_new_tokens=3, min_new_tokens=3)).token_ids) == 3


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_a_slow_reader_gets_everything_in_one_piece_and_holds_up_nobody(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        wanted = await engine.generate([5], **ENDLESS)
        slow = await engine.stream([5], **ENDLESS).start()
        quick = await engine.generate([9], **ENDLESS)
        assert len(quick.token_ids) == 200
        while engine.open_turns:
            await asyncio.sleep(0.005)
        deltas = [delta async for delta in slow]
        assert len(deltas) == 1
        assert deltas[0].text == wanted.text
        assert deltas[0].token_ids == wanted.token_ids
        assert deltas[0].usage == (1, 200, 0)


@asynchronous
async def test_a_loop_that_blocks_does_not_stop_the_steps(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        stream = await engine.stream([5], **ENDLESS).start()
        start = time.monotonic()
        while engine.open_turns and time.monotonic() - start < 30:
            time.sleep(0.002)
        assert engine.open_turns == 0
        assert len((await stream.result()).token_ids) == 200


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_a_full_queue_refuses_at_once_and_takes_more_when_there_is_room(model: oga.Model) -> None:
    async with oga.AsyncEngine(model, max_waiting=2) as engine:
        streams = [await engine.stream([5], **ENDLESS).start() for _ in range(4 + 2)]
        with pytest.raises(oga.QueueFullError, match=r"6 turns.*4 \+ 2"):
            await engine.generate([9], max_new_tokens=1)
        await streams[0].aclose()
        assert (await engine.generate([9], max_new_tokens=1, priority=1)).usage == (1, 1, 0)
        for stream in streams:
            await stream.aclose()
        await assert_all_returned(engine)


@asynchronous
async def test_a_refused_prompt_leaves_nothing_behind(model: oga.Model) -> None:
    async with oga.AsyncEngine(model, max_waiting=0) as engine:
        for prompt in ([512], [], [-1], [5] * 300, "the " * 200_000, [{"role": "user", "content": "x" * 2_000_000}]):
            with pytest.raises(oga.InvalidArgumentError):
                await engine.generate(prompt, max_new_tokens=1)
        with pytest.raises(oga.ArgumentTypeError, match="max_new_tokens"):
            engine.stream([5], max_tokens=3)  # type: ignore[call-arg]
        with pytest.raises(oga.InvalidArgumentError):
            await engine.generate([5], temperature=-1.0)
        await assert_all_returned(engine)


@asynchronous
async def test_a_text_that_can_never_fit_is_refused_before_it_is_tokenized(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        with pytest.raises(oga.InvalidArgumentError, match=r"256 tokens, which are at most \d+ characters"):
            await engine.generate("the end " * 1_000_000)


@asynchronous
async def test_one_failing_turn_does_not_touch_the_others(poisoned_folder: Path) -> None:
    async with oga.AsyncEngine(poisoned_folder) as engine:
        wanted = await engine.generate([5], max_new_tokens=10)
        good, bad = await asyncio.gather(
            engine.generate([5], max_new_tokens=10), engine.generate([300], max_new_tokens=10), return_exceptions=True
        )
        assert isinstance(bad, oga.ModelError)
        assert isinstance(good, oga.Result)
        assert good.token_ids == wanted.token_ids
        assert engine.error is None
        await assert_all_returned(engine)


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_an_engine_that_broke_fails_all_callers_with_the_cause(failing_folder: Path) -> None:
    async with oga.AsyncEngine(failing_folder) as engine:
        streams = [await engine.stream([5], **ENDLESS).start() for _ in range(3)]
        ends = await asyncio.gather(
            engine.generate([450]), *(stream.result() for stream in streams), return_exceptions=True
        )
        assert {type(end) for end in ends} == {oga.EngineUnhealthyError}
        assert all("short_lookup" in str(end) for end in ends)
        for _ in range(2):
            with pytest.raises(oga.EngineUnhealthyError, match="short_lookup"):
                await engine.generate([5], max_new_tokens=1)
        assert isinstance(engine.error, oga.EngineUnhealthyError)
        assert engine.open_turns == 0
        assert engine.statistics.total_blocks > 0


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_draining_lets_open_turns_end(model: oga.Model) -> None:
    engine = await oga.AsyncEngine(model).open()
    tasks = [asyncio.create_task(engine.generate([5], max_new_tokens=30, min_new_tokens=30)) for _ in range(9)]
    while engine.open_turns < 9:
        await asyncio.sleep(0)
    await engine.close(drain=True)
    assert [len((await task).token_ids) for task in tasks] == [30] * 9
    with pytest.raises(oga.EngineClosedError):
        await engine.generate([5])


@pytest.mark.usefixtures("slow_steps")
@pytest.mark.parametrize("options", [{"drain": False}, {"drain": True, "timeout": 0.01}])
@asynchronous
async def test_closing_answers_every_waiter(model: oga.Model, options: dict[str, Any]) -> None:
    engine = await oga.AsyncEngine(model).open()
    tasks = [asyncio.create_task(engine.generate([5], **ENDLESS)) for _ in range(40)]
    while engine.open_turns < 40:
        await asyncio.sleep(0)
    await engine.close(**options)
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    assert any(isinstance(end, oga.EngineClosedError) for end in ends)
    assert all(isinstance(end, oga.EngineClosedError | oga.Result) for end in ends)
    await engine.close()


@asynchronous
async def test_no_thread_outlives_its_engine(tiny_folder: Path) -> None:
    before = len(engine_threads())
    async with oga.AsyncEngine(tiny_folder) as engine:
        await engine.generate("the end", max_new_tokens=3)
        assert len(engine_threads()) > before
        model = engine.model
    assert model.closed
    forgotten = await oga.AsyncEngine(tiny_folder).open()
    await forgotten.generate([5], max_new_tokens=1)
    del forgotten
    gc.collect()
    for _ in range(500):
        if len(engine_threads()) == before:
            break
        await asyncio.sleep(0.01)
    assert len(engine_threads()) == before


@asynchronous
async def test_opening_what_is_not_there_says_what_is_missing(tmp_path: Path, model: oga.Model) -> None:
    with pytest.raises(oga.MissingFileError):
        async with oga.AsyncEngine(tmp_path / "nothing"):
            pass
    with pytest.raises(oga.InvalidStateError, match="not open"):
        oga.AsyncEngine(model).stream([5])
    with pytest.raises(oga.InvalidStateError, match="loaded"):
        oga.AsyncEngine(model, config={"search": {}})


@asynchronous
async def test_a_config_changes_what_is_loaded(tiny_folder: Path) -> None:
    async with oga.AsyncEngine(tiny_folder, config={"engine": {"dynamic_batching": {"max_batch_size": 3}}}) as engine:
        assert engine.capabilities.configured_max_batch_size == 3


def test_tasks_of_several_loops_share_an_engine(model: oga.Model) -> None:
    results: list[list[int]] = []

    async def serve() -> None:
        async with oga.AsyncEngine(model) as engine:

            async def ask() -> None:
                results.append((await engine.generate([5], max_new_tokens=9)).token_ids)

            threads = [threading.Thread(target=asyncio.run, args=(ask(),)) for _ in range(3)]
            for thread in threads:
                thread.start()
            await asyncio.gather(*(asyncio.to_thread(thread.join) for thread in threads))

    asyncio.run(serve())
    assert len(results) == 3
    assert results[0] == results[1] == results[2]


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_a_short_turn_starts_within_steps_of_a_long_one(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.stream([5], **ENDLESS) as long:
        await anext(long)
        before = (await settled(engine)).steps
        short = await engine.generate([9], max_new_tokens=1)
        after = (await settled(engine)).steps
        assert len(short.token_ids) == 1
        assert not long._ticket or not long._ticket.mailbox.is_over
        assert after - before < 5
