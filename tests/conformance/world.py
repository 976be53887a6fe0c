"""What a conformance case plays with: engines over the tiny model by one driver, and transcripts of what happened."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from drivers import TOKEN, Buffer, Driver, Engine, RefusedError, Request, Seen
from tiny_models import LIMITS

MOST_RUNS = 4000


class World:
    """Engines of one driver; everything is freed by ``end``, which also looks for cache that stayed in use."""

    def __init__(self, driver: Driver, folder: Path, models: dict[str, Any]) -> None:
        self.driver, self.folder, self._models = driver, folder, models
        self._engines: list[Engine] = []

    def model(self, search: Mapping[str, object] | None = None, eos: int | None = None, **limits: Any) -> Any:
        """The tiny model with other settings, loaded once."""
        overlay: dict[str, Any] = {"search": search or {}, "engine": {"dynamic_batching": LIMITS | limits}}
        if eos is not None:
            overlay["model"] = {"eos_token_id": eos}
        key = f"{self.driver.name} {self.folder} {json.dumps(overlay)}"
        if key not in self._models:
            self._models[key] = self.driver.load(self.folder, overlay)
        return self._models[key]

    def engine(self, search: Mapping[str, object] | None = None, eos: int | None = None, **limits: Any) -> Engine:
        """A new engine; ``search`` and ``limits`` overlay the model's configuration, ``eos`` is its only EOS id."""
        self._engines.append(self.driver.engine(self.model(search, eos, **limits)))
        return self._engines[-1]

    def alone(self, prompt: list[int], count: int, **options: Any) -> list[int]:
        """The tokens that a request generates which has an engine to itself."""
        engine = self.engine()
        engine.request("alone").begin(prompt, count, **options)
        return tokens(finish(engine))

    def end(self) -> None:
        for engine in self._engines:
            if not closed(engine):
                for request in engine.requests:
                    request.close()
                assert engine.count("free_blocks") == engine.count("total_blocks")
            for request in engine.requests:
                request.release()
            free(engine)


def closed(engine: Engine) -> bool:
    try:
        engine.capabilities()
    except RefusedError:
        return True
    return False


def free(engine: Engine) -> None:
    getattr(engine, "free", engine.close)()


def finish(engine: Engine, capacity: int = 16, buffer: Buffer | None = None) -> list[Seen]:
    """Runs until nothing is pending, and returns every event."""
    buffer = buffer or engine.buffer(capacity)
    seen: list[Seen] = []
    for _ in range(MOST_RUNS):
        if not engine.pending():
            return seen
        seen += engine.run(buffer)
    raise AssertionError("the engine never came to an end")


def tokens(seen: list[Seen], request: Request | None = None) -> list[int]:
    """The tokens of a request, or of all, in the order they came."""
    return [each.token for each in seen if each.flags & TOKEN and request in (None, each.request)]


def endings(seen: list[Seen]) -> list[str]:
    """The events that end something, as transcript lines."""
    return [str(each) for each in seen if each.flags != TOKEN]


def step(engine: Engine, buffer: Buffer) -> str:
    """The events of one run as one line; ``-`` for none."""
    return ", ".join(map(str, engine.run(buffer))) or "-"


def attempt(call: Callable[..., Any], *words: str) -> str:
    """``ok`` or what a call returned; or its status when it was refused, with a message that has all the words."""
    try:
        result = call()
    except RefusedError as refused:
        missing = [word for word in words if word not in str(refused)]
        return f"{refused.code} without {missing}: {refused}" if missing else refused.code
    if isinstance(result, bool):
        return str(result).lower()
    return str(result) if isinstance(result, int) else "ok"


def attempts(*calls: Callable[..., Any]) -> Iterator[str]:
    for call in calls:
        yield attempt(call)


def on_another_thread(call: Callable[[], Any]) -> str:
    """``attempt`` on a thread of its own."""
    outcome: list[str] = []
    thread = threading.Thread(target=lambda: outcome.append(attempt(call)))
    thread.start()
    thread.join()
    return outcome[0]
