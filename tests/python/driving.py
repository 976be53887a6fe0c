"""Drives engines for tests and keeps what the events said."""

from __future__ import annotations

from dataclasses import dataclass, field

import oga


@dataclass
class Turn:
    """What the events of one turn of one request said."""

    tokens: list[int] = field(default_factory=list)
    endings: list[oga.FinishReason] = field(default_factory=list)
    usage: oga.TurnUsage | None = None

    @property
    def ending(self) -> oga.FinishReason:
        """The one ending of the turn."""
        assert len(self.endings) == 1, self.endings
        return self.endings[0]


Turns = dict[tuple[oga.Request, int], Turn]


def note(buffer: oga.EngineEventBuffer, turns: Turns) -> None:
    """Adds the events of a run to ``turns``."""
    for event in buffer:
        if event.request is None:
            continue
        turn = turns.setdefault((event.request, event.turn_id), Turn())
        if event.flags & oga.EngineEventFlags.TOKEN:
            assert event.token is not None
            turn.tokens.append(event.token)
        if event.flags & oga.EngineEventFlags.TURN_FINISHED:
            turn.endings.append(event.finish_reason)
            turn.usage = event.usage


def finish(engine: oga.Engine, capacity: int = 8) -> Turns:
    """Runs until nothing is pending and returns every turn."""
    turns: Turns = {}
    with engine.create_event_buffer(capacity) as buffer:
        for _ in range(5000):
            if not engine.has_pending_requests():
                return turns
            note(engine.run(buffer), turns)
    raise AssertionError("the engine never came to an end")


def generate(engine: oga.Engine, prompt: list[int], count: int) -> list[int]:
    """The tokens that a fresh request generates."""
    request = engine.create_request()
    turn = request.begin_turn(prompt, oga.TurnOptions(request, max_generated_tokens=count))
    tokens = finish(engine)[request, turn].tokens
    request.close()
    return tokens
