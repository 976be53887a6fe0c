"""Engine.stream: one line for the simplest use, in any number, never losing anybody's events."""

from __future__ import annotations

import asyncio
import gc
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import finish, generate
from tokenizers import Tokenizer as Core
from tokenizers import processors

import oga

CHAT = [{"role": "user", "content": "the end"}]


def test_ids_give_the_ids_of_a_hand_driven_turn(engine: oga.Engine) -> None:
    wanted = generate(engine, [5, 6, 7], 9)
    assert list(engine.stream([5, 6, 7], max_new_tokens=9)) == wanted
    assert list(engine.stream(np.array([5, 6, 7], np.uint16), max_new_tokens=9)) == wanted
    assert list(engine.stream((token for token in (5, 6, 7)), max_new_tokens=9)) == wanted


def test_text_gives_pieces_that_add_up_to_the_decoded_whole(engine: oga.Engine, model: oga.Model) -> None:
    stream = engine.stream("the end", max_new_tokens=40)
    text = "".join(stream)
    assert stream.token_ids == generate(engine, model.tokenizer.encode("the end").tolist(), 40)
    assert text == model.tokenizer.decode(stream.token_ids)


def test_messages_go_through_the_chat_template(engine: oga.Engine, model: oga.Model) -> None:
    stream = engine.stream(CHAT, max_new_tokens=8)
    text = "".join(stream)
    assert text == model.tokenizer.decode(generate(engine, model.chat_template.encode(CHAT).tolist(), 8))


def test_a_stream_knows_how_it_ended(engine: oga.Engine) -> None:
    stream = engine.stream([5, 6, 7], max_new_tokens=3, min_new_tokens=3)
    assert not stream.done
    assert stream.usage is None
    assert len(list(stream)) == 3
    assert stream.done
    assert stream.finish_reason is oga.FinishReason.MAX_GENERATED_TOKENS
    assert stream.usage == (3, 3, 0)
    assert list(stream) == []


def test_streams_read_in_turns_run_together(engine: oga.Engine) -> None:
    prompts = [[5, 6, 7], [9], [40, 41]]
    wanted = [generate(engine, prompt, 10) for prompt in prompts]
    before = engine.get_statistics()
    streams = [engine.stream(prompt, max_new_tokens=10) for prompt in prompts]
    read: list[list[int]] = [[] for _ in prompts]
    while not all(stream.done for stream in streams):
        for tokens, stream in zip(read, streams, strict=True):
            tokens += [token for _, token in zip(range(1), stream, strict=False)]
    for tokens, stream in zip(read, streams, strict=True):
        tokens += list(stream)
    assert read == wanted
    after = engine.get_statistics()
    assert after.steps - before.steps == max(len(tokens) for tokens in wanted)


def test_reading_one_stream_to_its_end_keeps_the_pieces_of_the_others(engine: oga.Engine) -> None:
    wanted = [generate(engine, prompt, 6) for prompt in ([5], [9])]
    first, second = (engine.stream(prompt, max_new_tokens=6) for prompt in ([5], [9]))
    assert list(second) == wanted[1]
    assert first.ready() == wanted[0]
    assert first.ready() == []
    assert list(first) == []


def test_more_streams_than_rows_all_finish(engine: oga.Engine) -> None:
    streams = [engine.stream([number + 3], max_new_tokens=5, min_new_tokens=5) for number in range(11)]
    assert [len(list(stream)) for stream in streams] == [5] * 11
    assert engine.get_statistics().free_blocks == 96


@pytest.mark.parametrize("read", [0, 1, 3])
@pytest.mark.parametrize("how", ["close", "with", "drop"])
def test_a_stream_that_is_left_gives_everything_back(engine: oga.Engine, read: int, how: str) -> None:
    stream = engine.stream([5] * 20, max_new_tokens=50, min_new_tokens=50)
    for _ in range(read):
        next(stream)
    if how == "drop":
        del stream
        gc.collect()
    else:
        with stream:
            pass
        stream.close()
        assert stream.done
        assert stream.finish_reason is oga.FinishReason.CANCELLED
        assert list(stream) == []
    assert not engine.has_pending_requests()
    counts = engine.get_statistics()
    assert (counts.live_requests, counts.free_blocks) == (0, 96)
    assert len(generate(engine, [5], 3)) == 3


def test_a_break_out_of_the_loop_is_enough(engine: oga.Engine) -> None:
    for _ in engine.stream([5], max_new_tokens=100, min_new_tokens=100):
        break
    gc.collect()
    assert not engine.has_pending_requests()


def test_hand_driven_turns_and_streams_refuse_to_take_each_others_events(engine: oga.Engine) -> None:
    wanted = [generate(engine, prompt, 5) for prompt in ([5, 6], [9])]
    request = engine.create_request()
    turn = request.begin_turn([5, 6], oga.TurnOptions(request, max_generated_tokens=5))
    stream = engine.stream([9], max_new_tokens=5)
    with pytest.raises(oga.InvalidStateError, match="1 other request"):
        next(stream)
    buffer = engine.create_event_buffer(4)
    with pytest.raises(oga.InvalidStateError, match="open streams"):
        engine.run(buffer)
    stream.close()
    assert finish(engine)[request, turn].tokens == wanted[0]
    assert list(engine.stream([9], max_new_tokens=5)) == wanted[1]


def test_a_request_between_turns_does_not_disturb_streams(engine: oga.Engine) -> None:
    wanted = generate(engine, [9], 5)
    request = engine.create_request()
    request.begin_turn([5, 6], oga.TurnOptions(request, max_generated_tokens=2))
    finish(engine)
    assert list(engine.stream([9], max_new_tokens=5)) == wanted


def test_undrained_events_of_others_are_not_taken(engine: oga.Engine) -> None:
    requests = [engine.create_request() for _ in range(2)]
    for request in requests:
        request.begin_turn([5], oga.TurnOptions(request, max_generated_tokens=1))
    buffer = engine.run(engine.create_event_buffer(1))
    assert buffer[0].request is requests[0]
    stream = engine.stream([9], max_new_tokens=2)
    with pytest.raises(oga.InvalidStateError):
        next(stream)
    stream.close()
    assert engine.run(buffer)[0].request is requests[1]


def test_dropped_and_closed_requests_are_not_in_the_way(engine: oga.Engine) -> None:
    closed, dropped = engine.create_request(), engine.create_request()
    closed.begin_turn([5])
    dropped.begin_turn([5])
    closed.close()
    del dropped
    gc.collect()
    assert len(list(engine.stream([9], max_new_tokens=2, min_new_tokens=2))) == 2


def test_a_description_of_a_distribution_turns_sampling_on(engine: oga.Engine) -> None:
    def tokens(**options: Any) -> list[int]:
        return list(engine.stream([5, 6, 7], max_new_tokens=12, min_new_tokens=12, **options))

    greedy = tokens()
    assert tokens(temperature=0) == tokens(top_k=1) == tokens(do_sample=False) == tokens(seed=3) == greedy
    wide = {"temperature": 3.0, "top_k": 0, "seed": 3}
    assert tokens(**wide) == tokens(**wide) != greedy


@pytest.mark.parametrize(
    ("options", "field", "cause"),
    [
        ({"temperature": 0, "top_p": 0.5}, "top_p", "temperature is 0"),
        ({"temperature": 0.0, "top_k": 5}, "top_k", "temperature is 0"),
        ({"top_k": 1, "temperature": 0.5}, "temperature", "top_k is 1"),
        ({"top_k": 1, "min_p": np.float32(0.25)}, "min_p", "top_k is 1"),
    ],
)
def test_an_option_without_effect_is_refused_with_the_cause(
    engine: oga.Engine, options: dict[str, Any], field: str, cause: str
) -> None:
    with pytest.raises(oga.InvalidArgumentError, match=cause) as refusal:
        engine.stream([5], **options)
    assert refusal.value.field == field
    assert str(refusal.value).startswith(f"{field} is ")
    assert "do_sample" not in str(refusal.value)
    assert len(list(engine.stream([5], temperature=0, top_p=1, min_p=0.0, max_new_tokens=2, ignore_eos=True))) == 2


def test_every_option_of_turns_is_a_keyword(engine: oga.Engine) -> None:
    def tokens(**options: Any) -> list[int]:
        return list(engine.stream([5, 6, 7], max_new_tokens=8, **options))

    assert tokens(logit_bias={42: 1000.0}) == [42] * 8
    assert tokens(logit_bias={42: 1000.0}, stop_tokens=[42]) == [42]
    assert set(tokens(allowed_tokens=[20, 21], banned_sequences=[[20]])) == {21}
    assert tokens(min_p=1.0, min_new_tokens=8) == tokens(min_new_tokens=8), "a warper alone turns sampling on"
    with pytest.raises(TypeError, match="no keyword 'max_generated_tokens'"):
        tokens(max_generated_tokens=3)


def test_a_session_limit_applies(engine: oga.Engine) -> None:
    stream = engine.stream([5, 6], min_new_tokens=3, options=oga.RequestOptions(max_session_tokens=5))
    assert len(list(stream)) == 3
    assert stream.finish_reason is oga.FinishReason.MAX_SESSION_TOKENS


BAD: list[tuple[Any, dict[str, Any], type[Exception]]] = [
    ("", {}, ValueError),
    ([], {}, ValueError),
    ([512], {}, ValueError),
    ([5] * 256, {}, ValueError),
    (None, {}, TypeError),
    (b"text", {}, TypeError),
    ([5], {"temperature": float("nan")}, ValueError),
    ([5], {"max_new_tokens": 0}, ValueError),
    ([5], {"max_new_tokens": -1}, TypeError),
    ([5], {"max_new_tokens": 2, "min_new_tokens": 3}, ValueError),
    ([5], {"max_tokens": 2}, TypeError),
    ([{"role": "user"}, 5], {}, ValueError),
    ([5], {"options": {"priority": 1}}, TypeError),
]


@pytest.mark.parametrize(("prompt", "options", "kind"), BAD, ids=lambda value: repr(value)[:24])
def test_a_bad_stream_is_refused_at_once_and_leaves_nothing(
    engine: oga.Engine, prompt: Any, options: dict[str, Any], kind: type[Exception]
) -> None:
    with pytest.raises(kind):
        engine.stream(prompt, **options)
    gc.collect()
    assert not engine.has_pending_requests()
    assert engine.get_statistics().live_requests == 0
    assert len(list(engine.stream([5], max_new_tokens=2, min_new_tokens=2))) == 2


def test_a_stream_ends_with_its_engine(model: oga.Model) -> None:
    with oga.Engine(model) as engine:
        stream = engine.stream([5])
        next(stream)
    assert stream.ready() == []
    with pytest.raises(oga.InvalidStateError, match="Engine cannot be used"):
        next(stream)


def test_a_turn_that_fails_raises_after_its_pieces_and_harms_nobody(poisoned_folder: Path) -> None:
    with oga.Model(poisoned_folder) as model, oga.Engine(model) as engine:
        wanted = list(engine.stream([5, 6], max_new_tokens=6))
        bad, good = engine.stream([5, 300], max_new_tokens=6), engine.stream([5, 6], max_new_tokens=6)
        assert list(good) == wanted
        assert bad.done
        assert bad.finish_reason is oga.FinishReason.FAILED
        for _ in range(2):
            with pytest.raises(oga.ModelError, match="NaN"):
                next(bad)
        assert isinstance(bad.error, oga.ModelError)
        assert list(engine.stream([5, 6], max_new_tokens=6)) == wanted
        assert engine.get_statistics().live_requests == 0


def test_special_tokens_that_the_model_writes_are_hidden_unless_asked_for(engine: oga.Engine) -> None:
    tokenizer = engine.model.tokenizer
    special, letter = tokenizer.to_token_id("<|im_start|>"), tokenizer.to_token_id("a")
    for shows in (False, True):
        with engine.create_request() as request, engine.create_event_buffer(4) as buffer:
            options = oga.TurnOptions(request, max_generated_tokens=30, allowed_tokens=[special, letter])
            options.set_do_sample(True)
            options.set_temperature(100.0)
            options.set_seed(1)
            options.set_emit_text(True, include_special_tokens=shows)
            request.begin_turn([5, 6], options)
            text, tokens = "", []
            while engine.has_pending_requests():
                for event in engine.run(buffer):
                    text += event.text
                    tokens.append(event.token)
        assert special in tokens
        assert text == tokenizer.decode(tokens, skip_special_tokens=not shows)
        assert ("<|im_start|>" in text) is shows


@pytest.mark.parametrize("adds", [False, True])
def test_a_text_prompt_begins_as_the_tokenizer_says(tiny_folder: Path, tmp_path: Path, adds: bool) -> None:
    folder = with_bos(tiny_folder, tmp_path / "model") if adds else tiny_folder
    with oga.Model(folder) as model, oga.Engine(model) as engine:
        counts = []
        for prompt in ("abc", "<|im_start|>abc", "<|im_start|>"):
            stream = engine.stream(prompt, max_new_tokens=1)
            list(stream)
            assert stream.usage is not None
            counts.append(stream.usage.prompt_tokens)
        assert counts == [3 + adds, 4, 1]


def test_bos_stands_once_in_a_prompt_and_as_often_as_asked_in_a_text(tiny_folder: Path, tmp_path: Path) -> None:
    tokenizer = oga.Tokenizer(with_bos(tiny_folder, tmp_path / "model"))
    bos, *text = tokenizer.encode("abc").tolist()
    spelled = "<|im_start|>abc"
    assert tokenizer.encode(spelled).tolist() == [bos, bos, *text]
    assert tokenizer.encode_prompt(spelled).tolist() == tokenizer.encode_prompt("abc").tolist() == [bos, *text]
    assert tokenizer.encode_prompt("<|im_start|>" + spelled).tolist() == [bos, bos, *text]
    assert tokenizer.encode_prompt("").tolist() == [bos]
    tokenizer.update_options(add_special_tokens=False)
    assert tokenizer.encode_prompt("abc").tolist() == text
    assert tokenizer.encode_prompt("<|im_start|>" + spelled).tolist() == [bos, bos, *text]
    assert oga.Tokenizer(tiny_folder).encode_prompt(spelled).tolist() == [bos, *text]


def test_bos_begins_a_conversation_and_not_its_turns(tiny_folder: Path, tmp_path: Path) -> None:
    async def counted() -> list[int]:
        counts = []
        folder = with_bos(tiny_folder, tmp_path / "model")
        async with oga.AsyncEngine(folder) as engine, engine.open_conversation() as conversation:
            for prompt in ("abc", "abc", "abc"):
                result = await conversation.generate(prompt, max_new_tokens=2)
                assert result.usage is not None
                counts.append(result.usage.prompt_tokens)
        return counts

    assert asyncio.run(counted()) == [4, 3, 3]


def with_bos(folder: Path, target: Path) -> Path:
    """A copy of a model folder whose tokenizer puts BOS before every text."""
    shutil.copytree(folder, target)
    core = Core.from_file(str(target / "tokenizer.json"))
    special = [("<|im_start|>", core.token_to_id("<|im_start|>"))]
    core.post_processor = processors.TemplateProcessing(single="<|im_start|> $A", special_tokens=special)
    core.save(str(target / "tokenizer.json"))
    return target
