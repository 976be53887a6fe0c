"""The prefix cache: nothing that a request generates depends on it, and it tells what it saved."""

from __future__ import annotations

import random
from collections.abc import Callable

from driving import finish, generate

import oga

PROMPT = [7 * i % 500 for i in range(26)]


def cached(engine: oga.Engine, prompt: list[int], salt: int | None = None) -> int:
    """Prompt tokens of a fresh request that came from the cache."""
    request = engine.create_request(options=oga.RequestOptions(cache_salt=salt))
    turn = request.begin_turn(prompt, oga.TurnOptions(request, max_generated_tokens=2))
    usage = finish(engine)[request, turn].usage
    request.close()
    assert usage is not None
    assert usage.prompt_tokens == len(prompt)
    return usage.cached_prompt_tokens


def test_a_second_request_takes_whole_blocks_and_computes_at_least_one_token(engine: oga.Engine) -> None:
    assert engine.get_capabilities().prefix_caching
    assert [cached(engine, PROMPT) for _ in range(2)] == [0, 24]
    assert cached(engine, PROMPT[:24]) == 20
    assert cached(engine, [*PROMPT[:9], 3, *PROMPT[10:]]) == 8
    counts = engine.get_statistics()
    assert (counts.prefix_queries, counts.prefix_hits, counts.prefix_tokens_saved) == (4, 3, 52)
    assert counts.free_blocks == counts.total_blocks
    engine.drop_prefix_cache()
    assert engine.get_statistics().cached_blocks == 0
    assert cached(engine, PROMPT) == 0


def test_requests_that_arrive_together_compute_their_beginning_once(engine: oga.Engine) -> None:
    requests = [engine.create_request() for _ in range(4)]
    for i, request in enumerate(requests):
        request.begin_turn([*PROMPT, i], oga.TurnOptions(request, max_generated_tokens=1))
    turns = finish(engine)
    saved = [turns[request, 1].usage.cached_prompt_tokens for request in requests]  # type: ignore[union-attr]
    assert saved == [0, 24, 24, 24]


def test_salts_do_not_share(engine: oga.Engine) -> None:
    assert [cached(engine, PROMPT, salt) for salt in (1, 2, 1, None)] == [0, 0, 24, 0]


def test_the_config_turns_it_off(make_model: Callable[..., oga.Model]) -> None:
    with oga.Engine(make_model(prefix_caching=False)) as engine:
        assert [cached(engine, PROMPT) for _ in range(2)] == [0, 0]
        assert not engine.get_capabilities().prefix_caching


def test_near_twins_generate_what_they_generate_in_an_engine_without_a_cache(
    make_model: Callable[..., oga.Model],
) -> None:
    draw = random.Random(5)
    prompts = []
    for _ in range(500):
        twin = [PROMPT[i] for i in range(draw.randrange(12, 26))]
        match draw.randrange(4):
            case 0:
                twin[:4], twin[4:8] = twin[4:8], twin[:4]
            case 1:
                block = twin[4:8]
                draw.shuffle(block)
                twin[4:8] = block
            case 2:
                twin[draw.randrange(4)] = draw.randrange(500)
        prompts.append(twin)
    with oga.Engine(make_model(prefix_caching=False, num_blocks=96)) as cold:
        expected = {tuple(prompt): sampled(cold, prompt) for prompt in prompts}
    with oga.Engine(make_model(num_blocks=12)) as warm:
        for prompt in prompts:
            assert sampled(warm, prompt) == expected[tuple(prompt)]
        counts = warm.get_statistics()
        assert counts.prefix_hits > 250
        assert counts.prefix_evictions > 100


def sampled(engine: oga.Engine, prompt: list[int]) -> list[int]:
    """Tokens drawn at temperature 1 with a fixed seed: they move when a logit does."""
    request = engine.create_request()
    options = oga.TurnOptions(request, max_generated_tokens=3, do_sample=True, temperature=1.0, top_k=0, seed=9)
    turn = request.begin_turn(prompt, options)
    tokens = finish(engine)[request, turn].tokens
    request.close()
    return tokens


def test_generate_is_the_same_with_and_without(engine: oga.Engine) -> None:
    assert generate(engine, PROMPT, 6) == generate(engine, PROMPT, 6)
