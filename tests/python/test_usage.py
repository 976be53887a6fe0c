"""TurnUsage: what a turn took and made."""

from __future__ import annotations

from driving import finish

import oga


def test_usage_counts_one_turn(engine: oga.Engine) -> None:
    request = engine.create_request()
    for prompt, count in (([5, 6, 7], 4), ([8], 2)):
        turn = request.begin_turn(
            prompt, oga.TurnOptions(request, max_generated_tokens=count, min_generated_tokens=count)
        )
        usage = finish(engine)[request, turn].usage
        assert usage is not None
        assert usage.prompt_tokens == len(prompt)
        assert usage.generated_tokens == count
        assert usage.cached_prompt_tokens == 0


def test_a_cancelled_turn_counts_what_it_made(engine: oga.Engine) -> None:
    request = engine.create_request()
    turn = request.begin_turn([5, 6])
    buffer = engine.create_event_buffer(2)
    for _ in range(3):
        engine.run(buffer)
    request.cancel_turn(turn)
    assert finish(engine)[request, turn].usage == (2, 3, 0)
