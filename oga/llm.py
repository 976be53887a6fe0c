"""Many prompts at once in a plain program: lists in, lists out, in the same order."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, Unpack, overload

from oga.config import Config
from oga.engine import Engine
from oga.errors import ArgumentTypeError, EngineUnhealthyError, OgaError
from oga.event import FinishReason
from oga.generation import Delta, Pending, Result, Timings, encode_prompt, is_chat
from oga.model import Model
from oga.stream import Generation, turn_settings
from oga.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from oga.chat import Message
    from oga.generation import Prompt

__all__ = ["LLM"]

WAITING_PER_ROW = 4  # turns in the engine for each row of its largest batch; the rest wait here and cost nothing


class LLM:
    """Generates for lists of prompts, as many at a time as the engine takes. Belongs to the thread that made it.

    ::

        with oga.LLM("folder") as llm:
            for result in llm.generate(["Once upon a time", "The sea"], max_new_tokens=64):
                print(result.text)
            print(llm.chat([{"role": "user", "content": "Hello!"}]).text)
    """

    def __init__(
        self,
        source: Model | Config | str | os.PathLike[str],
        *,
        config: str | Mapping[str, Any] | None = None,
    ) -> None:
        """Loads a model folder, with ``config`` merged over its own, or takes a loaded model, which stays the caller's.

        Raises what :class:`oga.Model` and :class:`oga.Engine` raise.
        """
        with contextlib.ExitStack() as undo:
            if isinstance(source, Model):
                if config is not None:
                    raise ArgumentTypeError(
                        "config cannot change a model that is loaded; give its folder instead.", field="config"
                    )
                self._model = source
            else:
                read = source if isinstance(source, Config) else undo.enter_context(Config(source))
                if config is not None:
                    read.overlay(config)
                self._model = Model(read)
            self._is_own_model = not isinstance(source, Model)
            if self._is_own_model:
                undo.callback(self._model.close)
            self._engine = Engine(self._model)
            if self._is_own_model:
                undo.pop_all()  # the config is only read; it frees itself
            self._turns = Turns(self._engine)
            self._window = WAITING_PER_ROW * self._engine.get_capabilities().configured_max_batch_size

    @property
    def model(self) -> Model:
        """The loaded model."""
        return self._model

    @property
    def engine(self) -> Engine:
        """The engine; do not run it by hand while a call of this object is in progress."""
        return self._engine

    def generate(
        self, prompts: str | Sequence[Prompt], *, progress: bool | None = None, **generation: Unpack[Generation]
    ) -> list[Result]:
        """One result per prompt, in the order of the prompts; a single text is a list of one.

        A prompt is text, a list of messages or a sequence of token ids. One that fails, or is refused, has its reason
        in :attr:`oga.Result.error` and does not touch the others. Keywords are those of :meth:`oga.Engine.stream`.

        ``progress`` shows a bar on standard error; None shows it for several prompts on a terminal, when the package
        ``rich`` is installed.

        Raises :class:`oga.EngineUnhealthyError` when the engine fails for good.
        """
        listed = [prompts] if isinstance(prompts, str) else _listed(prompts)
        settings = turn_settings(generation)
        answers = [_Answer() for _ in listed]
        with _progress(len(listed), progress) as advance:
            self._run(listed, settings, answers, advance)
        return [answer.result() for answer in answers]

    @overload
    def chat(
        self, messages: Sequence[Message], *, progress: bool | None = None, **generation: Unpack[Generation]
    ) -> Result: ...

    @overload
    def chat(
        self, messages: Sequence[Sequence[Message]], *, progress: bool | None = None, **generation: Unpack[Generation]
    ) -> list[Result]: ...

    def chat(
        self,
        messages: Sequence[Message] | Sequence[Sequence[Message]],
        *,
        progress: bool | None = None,
        **generation: Unpack[Generation],
    ) -> Result | list[Result]:
        """The answer to a conversation, or the answers to several.

        For one conversation a failure is raised; for several it is in :attr:`oga.Result.error`.
        """
        if is_chat(messages):
            result = self.generate([messages], progress=progress, **generation)[0]  # type: ignore[list-item]
            if result.error is not None:
                raise result.error
            return result
        for index, conversation in enumerate(messages):
            if not is_chat(conversation):
                raise ArgumentTypeError(
                    f'messages[{index}] must be a conversation like [{{"role": "user", "content": "..."}}].',
                    field="messages",
                )
        return self.generate(messages, progress=progress, **generation)  # type: ignore[arg-type]

    def close(self) -> None:
        """Ends the engine and the model that this object loaded. Idempotent."""
        self._turns.close()
        self._engine.close()
        if self._is_own_model:
            self._model.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _run(
        self, prompts: list[Any], settings: dict[str, Any], answers: list[_Answer], advance: Callable[[int], None]
    ) -> None:
        waiting = iter(zip(prompts, answers, strict=True))
        done = 0
        try:
            while True:
                while len(self._turns) < self._window and (following := next(waiting, None)) is not None:
                    self._begin(*following, settings)
                if not len(self._turns):
                    break
                self._turns.step()
                advance((over := sum(answer.is_over for answer in answers)) - done)
                done = over
        except BaseException as error:
            reason = error if isinstance(error, OgaError) else EngineUnhealthyError("The call was interrupted.")
            self._turns.fail_all(reason)
            raise

    def _begin(self, prompt: Any, answer: _Answer, settings: dict[str, Any]) -> None:
        answer.timings = Timings()
        try:
            self._turns.begin(encode_prompt(self._model, prompt), settings, answer)
        except EngineUnhealthyError:
            raise
        except OgaError as error:
            answer.fail(error)
        else:
            answer.timings.accepted = time.monotonic()


class _Answer:
    """The output of one prompt, collected."""

    def __init__(self) -> None:
        self.timings = Timings()
        self.is_over = False
        self._pending = Pending()
        self._error: OgaError | None = None

    def receive(self, delta: Delta) -> None:
        if delta.token_ids and not self.timings.first_token:
            self.timings.first_token = time.monotonic()
        self._end(delta.last)
        self._pending.add(delta)

    def fail(self, error: OgaError) -> None:
        self._error = error
        self._end(True)

    def result(self) -> Result:
        whole = self._pending.take() or Delta()
        if self._error is not None:
            whole.finish_reason = FinishReason.FAILED
        return Result.of(whole, self.timings, self._error)

    def _end(self, is_last: bool) -> None:
        if is_last:
            self.is_over = True
            self.timings.finished = time.monotonic()


def _listed(prompts: Any) -> list[Any]:
    if is_chat(prompts):
        raise ArgumentTypeError(
            "These are the messages of one conversation: use chat(messages), or generate([messages]).", field="prompts"
        )
    listed = list(prompts)
    for index, prompt in enumerate(listed):
        if isinstance(prompt, int):
            raise ArgumentTypeError(
                f"prompts[{index}] is {prompt}; prompts is a list of prompts: put token ids in a list of their own.",
                field="prompts",
            )
    return listed


@contextlib.contextmanager
def _progress(total: int, wanted: bool | None) -> Iterator[Callable[[int], None]]:
    """Gives a function that moves a bar by some prompts."""
    if not (sys.stderr.isatty() and total > 1 if wanted is None else wanted):
        yield lambda _: None
        return
    try:
        from rich.console import Console
        from rich.progress import MofNCompleteColumn, Progress
    except ImportError:
        yield lambda _: None
        return
    with Progress(*Progress.get_default_columns(), MofNCompleteColumn(), console=Console(stderr=True)) as bars:
        task = bars.add_task("prompts", total=total)

        def advance(count: int) -> None:
            bars.advance(task, count)

        yield advance
