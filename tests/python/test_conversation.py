"""Conversations of the asyncio engine: continued, rewound, forked, and never different from what was said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from asyncs import assert_all_returned, asynchronous

import oga

ENDLESS: dict[str, Any] = {"max_new_tokens": 150, "min_new_tokens": 150}
SHORT: dict[str, Any] = {"max_new_tokens": 6, "min_new_tokens": 6}


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


@asynchronous
async def test_a_turn_sees_what_was_said_before(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        first = await conversation.generate([5, 6], **SHORT)
        second = await conversation.generate([7], **SHORT)
        whole = await engine.generate([5, 6, *first.token_ids, 7], **SHORT)
        assert second.token_ids == whole.token_ids
        assert second.usage is not None
        assert second.usage.prompt_tokens == 1
        assert [turn.token_ids for turn in conversation.turns] == [tuple(first.token_ids), tuple(second.token_ids)]


@asynchronous
async def test_messages_continue_as_the_template_writes_the_whole_conversation(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        first = await conversation.generate(said("the end"), **SHORT)
        second = await conversation.generate(said("again"), **SHORT)
        messages = [*said("the end"), {"role": "assistant", "content": first.text}, *said("again")]
        assert conversation.messages == [*messages, {"role": "assistant", "content": second.text}]
        assert second.text == (await engine.generate(messages, **SHORT)).text


@asynchronous
async def test_a_continued_conversation_feeds_only_what_is_new(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        # Text that the tokenizer writes as the model does, so that the kept sequence reads as the conversation.
        await conversation.generate(said("the end"), allowed_tokens=model.tokenizer.encode("abcdefgh"), **SHORT)
        new = model.tokenizer.encode("<|im_end|>\n<|im_start|>user\nagain<|im_end|>\n<|im_start|>assistant\n")
        result = await conversation.generate(said("again"), **SHORT)
        assert result.usage is not None
        assert result.usage.prompt_tokens == len(new)


@asynchronous
async def test_rewinding_takes_turns_back(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        answers = [(await conversation.generate(said(text), **SHORT)).text for text in ("one", "two", "three")]
        for number in (3, 2, 1):
            await conversation.rewind(number)
            assert len(conversation.turns) == number - 1
            again = await conversation.generate(said(("one", "two", "three")[number - 1]), **SHORT)
            assert again.text == answers[number - 1]
        with pytest.raises(oga.NotFoundError, match="turns 1 to 1, not 2"):
            await conversation.rewind(2)


@asynchronous
async def test_a_fork_goes_its_own_way(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        conversation = engine.open_conversation()
        await conversation.generate([5, 6], **SHORT)
        forked = await conversation.fork()
        mine = await conversation.generate([7], **SHORT)
        theirs = await forked.generate([8], **SHORT)
        assert theirs.token_ids != mine.token_ids
        assert len(conversation.turns) == len(forked.turns) == 2
        await forked.rewind(2)
        assert (await forked.generate([7], **SHORT)).token_ids == mine.token_ids
        await conversation.close()
        await forked.close()
        await assert_all_returned(engine)


@asynchronous
async def test_an_answer_that_was_replaced_is_what_the_next_turn_sees(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        await conversation.generate(said("the end"), **SHORT)
        conversation.replace_answer({"role": "assistant", "content": "something else"})
        result = await conversation.generate(said("again"), **SHORT)
        messages = [*said("the end"), {"role": "assistant", "content": "something else"}, *said("again")]
        assert result.text == (await engine.generate(messages, **SHORT)).text
        await conversation.rewind(2)
        assert (await conversation.generate(said("again"), **SHORT)).text == result.text


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_a_turn_that_was_left_stays_with_what_it_generated(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        async with conversation.stream(said("the end"), **ENDLESS) as stream:
            got = await anext(stream)
        turn = conversation.turns[0]
        assert turn.token_ids[: len(got.token_ids)] == tuple(got.token_ids)
        assert len(turn.token_ids) < 150
        assert len((await conversation.generate(said("again"), **SHORT)).token_ids) == 6


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_a_turn_can_follow_one_whose_task_was_cancelled_at_once(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        task = asyncio.create_task(conversation.generate([5], **ENDLESS))
        while not engine.open_turns:
            await asyncio.sleep(0)
        await asyncio.sleep(0.003)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert len((await conversation.generate([6], **SHORT)).token_ids) == 6
        assert len(conversation.turns) == 2


@asynchronous
async def test_a_turn_that_failed_leaves_the_conversation_as_it_was(poisoned_folder: Path) -> None:
    async with oga.AsyncEngine(poisoned_folder) as engine, engine.open_conversation() as conversation:
        await conversation.generate([5, 6], **SHORT)
        for prompt in ([300], [9, 300]):
            with pytest.raises(oga.ModelError):
                await conversation.generate(prompt, **SHORT)
        assert len(conversation.turns) == 1
        after = await conversation.generate([7], **SHORT)
        await conversation.rewind(2)
        assert (await conversation.generate([7], **SHORT)).token_ids == after.token_ids


@asynchronous
async def test_a_first_turn_that_failed_can_be_followed_by_another(poisoned_folder: Path) -> None:
    async with oga.AsyncEngine(poisoned_folder) as engine, engine.open_conversation() as conversation:
        with pytest.raises(oga.ModelError):
            await conversation.generate([300], **SHORT)
        assert (await conversation.generate([5], **SHORT)).text == (await engine.generate([5], **SHORT)).text


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_one_turn_at_a_time(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine, engine.open_conversation() as conversation:
        async with conversation.stream([5], **ENDLESS):
            assert conversation.is_busy
            for refused in (conversation.generate([6]), conversation.rewind(1), conversation.fork()):
                with pytest.raises(oga.InvalidStateError, match="going on"):
                    await refused
        assert not conversation.is_busy
        await conversation.generate([6], **SHORT)


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_closing_ends_the_turn_that_goes_on(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        conversation = engine.open_conversation()
        task = asyncio.create_task(conversation.generate([5], **ENDLESS))
        while not conversation.is_busy or not engine.open_turns:
            await asyncio.sleep(0)
        await asyncio.sleep(0.005)
        await conversation.close()
        assert (await task).finish_reason is oga.FinishReason.CANCELLED
        with pytest.raises(oga.InvalidStateError, match="closed"):
            await conversation.generate([5])
        await assert_all_returned(engine)


@pytest.mark.usefixtures("slow_steps")
@asynchronous
async def test_a_refused_turn_leaves_the_conversation_free(model: oga.Model) -> None:
    async with oga.AsyncEngine(model, max_waiting=0) as engine, engine.open_conversation() as conversation:
        for prompt in ([512], [], [5] * 300):
            with pytest.raises(oga.InvalidArgumentError):
                await conversation.generate(prompt)
        others = [await engine.stream([5], **ENDLESS).start() for _ in range(4)]
        with pytest.raises(oga.QueueFullError):
            await conversation.generate([5])
        for other in others:
            await other.aclose()
        assert not conversation.is_busy
        assert len((await conversation.generate([5], **SHORT)).token_ids) == 6


@asynchronous
async def test_dropped_conversations_give_everything_back(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        for number in range(8):
            conversation = engine.open_conversation()
            await conversation.generate([number + 3], **SHORT)
            del conversation
        await assert_all_returned(engine)


@asynchronous
async def test_many_conversations_outnumber_what_the_cache_holds(model: oga.Model) -> None:
    async with oga.AsyncEngine(model) as engine:
        conversations = [engine.open_conversation() for _ in range(20)]
        first = await asyncio.gather(*(each.generate([9] * 40, **SHORT) for each in conversations))
        second = await asyncio.gather(*(each.generate([7], **SHORT) for each in conversations))
        assert len({tuple(result.token_ids) for result in first}) == 1
        assert len({tuple(result.token_ids) for result in second}) == 1
        for each in conversations:
            await each.close()
        await assert_all_returned(engine)


def test_the_continuation_is_found_by_what_the_tokens_say() -> None:
    from oga.aio.conversation import continued_at

    pieces = {1: b"ab", 2: b"a", 3: b"b", 4: b"c", 5: b"abc"}

    def at(kept: Sequence[int], whole: Sequence[int]) -> int | None:
        return continued_at(pieces.__getitem__, kept, whole)

    assert at([], [1, 4]) == 0
    assert at([1], [1, 4]) == 1
    assert at([2, 3], [1, 4]) == 1
    assert at([1], [2, 3, 4]) == 2
    assert at([1], [5, 4]) is None
    assert at([1], [4]) is None
    assert at([1], [1]) is None
