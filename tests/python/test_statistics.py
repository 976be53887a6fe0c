"""EngineStatistics: counters that agree with what the events said."""

from __future__ import annotations

import dataclasses

from driving import finish

import oga


def test_a_new_engine_has_done_nothing(engine: oga.Engine) -> None:
    counts = engine.get_statistics()
    assert (counts.steps, counts.rows, counts.generated_tokens, counts.live_requests) == (0, 0, 0, 0)
    assert counts.free_blocks == counts.total_blocks == 96
    assert counts.block_size == 4
    # 2 layers, keys and values, 2 heads of 16 floats, 4 tokens.
    assert counts.block_bytes == 2 * 2 * 2 * 16 * 4 * 4


def test_counters_add_up_to_what_was_generated(engine: oga.Engine) -> None:
    requests = [engine.create_request() for _ in range(3)]
    for request in requests:
        request.begin_turn([5, 6, 7], oga.TurnOptions(request, max_generated_tokens=4))
    finish(engine)
    counts = engine.get_statistics()
    assert counts.steps == 4
    assert counts.rows == 12
    assert counts.generated_tokens == 12
    assert counts.scheduled_tokens == 3 * (3 + 3)
    assert counts.live_requests == 3
    assert counts.free_blocks < counts.total_blocks
    for request in requests:
        request.close()
    assert engine.get_statistics().free_blocks == counts.total_blocks


def test_a_snapshot_does_not_change(engine: oga.Engine) -> None:
    before = engine.get_statistics()
    copy = dataclasses.replace(before)
    request = engine.create_request()
    request.begin_turn([3], oga.TurnOptions(request, max_generated_tokens=1))
    finish(engine)
    assert before == copy
