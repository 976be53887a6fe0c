"""Conversations: sequences that are kept between turns, to be continued, rewound and forked.

A conversation is its list of turns. The engine's request that holds the sequence is a means: when it does not say what
the turns say (an answer was replaced, the chat template writes earlier turns differently), the next turn begins a fresh
request with everything, and the prefix cache makes that cheap.

Invariants:

- K1: one turn at a time; ``_is_busy`` from the first step of its stream until its end.
- K2: the request, the sequence and the turns are changed on the owner thread only, between steps.
- K3: a turn that failed is not part of the conversation.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import threading
from functools import partial
from typing import TYPE_CHECKING, Any, Self, Unpack

from oga._native.tokens import as_int32
from oga.aio.stream import AsyncStream
from oga.errors import EngineClosedError, EngineUnhealthyError, InvalidStateError, NotFoundError
from oga.generation import is_chat
from oga.stream import Generation, turn_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from oga.aio.guidance import GuidanceCompiler
    from oga.aio.owner import Owner
    from oga.aio.prompts import PromptEncoder
    from oga.chat import Message
    from oga.errors import OgaError
    from oga.generation import Delta, Prompt, Result
    from oga.model import Model
    from oga.request import Request, RequestOptions
    from oga.turns import OpenTurn, Receiver, Turns

__all__ = ["Conversation", "ConversationTurn"]


@dataclasses.dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A turn of a conversation that is over."""

    number: int
    """1, 2, 3 ... within the conversation."""
    messages: tuple[Message, ...]
    """What was said; empty for a turn that was given as text or token ids."""
    answer: Message | None
    """What the model answered; None for a turn that was given as text or token ids."""
    text: str
    token_ids: tuple[int, ...]
    """What the model generated."""


@dataclasses.dataclass(slots=True)
class Record:
    """A turn and where it begins in the sequence; ``start`` and ``engine_turn`` are None when nothing begins there."""

    messages: tuple[Message, ...]
    answer: Message | None
    text: str
    output: list[int]
    start: int | None
    engine_turn: int | None


class Conversation:
    """A kept sequence; made by :meth:`oga.AsyncEngine.open_conversation`.

    ::

        async with engine.open_conversation() as conversation:
            await conversation.generate([{"role": "user", "content": "My name is Ada."}])
            result = await conversation.generate([{"role": "user", "content": "What is my name?"}])
    """

    def __init__(
        self,
        owner: Owner,
        prompts: PromptEncoder,
        grammars: GuidanceCompiler,
        model: Model,
        options: Callable[[], RequestOptions | None],
    ) -> None:
        self._owner = owner
        self._prompts = prompts
        self._grammars = grammars
        self._model = model
        self._options = options
        self._lock = threading.Lock()
        self._is_busy = False
        self._is_leaving = False
        self._is_closed = False
        self._request: Request | None = None
        self._sequence: list[int] = []
        self._records: list[Record] = []

    @property
    def turns(self) -> list[ConversationTurn]:
        """The turns that are over and were not rewound."""
        return [
            ConversationTurn(number, each.messages, each.answer, each.text, tuple(each.output))
            for number, each in enumerate(list(self._records), start=1)
        ]

    @property
    def messages(self) -> list[Message]:
        """Everything that was said, the answers included."""
        return [
            message
            for each in list(self._records)
            for message in (*each.messages, *([] if each.answer is None else [each.answer]))
        ]

    @property
    def is_busy(self) -> bool:
        """Whether a turn is going on."""
        return self._is_busy

    @property
    def is_leaving(self) -> bool:
        """Whether the turn that goes on has lost its reader and ends with the next step."""
        return self._is_leaving

    @property
    def tokens(self) -> int:
        """How long the sequence is, in tokens."""
        return len(self._sequence)

    def stream(self, prompt: Prompt, **generation: Unpack[Generation]) -> AsyncStream:
        """A turn that continues the sequence, piece by piece.

        ``prompt`` is what is new: messages, or text or token ids as they are. A turn that is cancelled stays, with
        what it has generated; one that fails leaves the conversation as it was.

        The stream raises :class:`oga.InvalidStateError` while another turn goes on and after :meth:`close`.
        """
        return self.stream_encoded(prompt, None, **generation)

    def stream_encoded(
        self,
        prompt: Prompt,
        encode: Callable[[Sequence[Message]], Sequence[int]] | None,
        **generation: Unpack[Generation],
    ) -> AsyncStream:
        """As :meth:`stream`; ``encode`` turns the whole conversation into token ids, on the text thread."""
        settings = turn_settings(generation)
        return AsyncStream(self._owner, partial(self._prepare, prompt, encode, settings))

    async def generate(self, prompt: Prompt, **generation: Unpack[Generation]) -> Result:
        """The whole output of a turn that continues the sequence."""
        return await self.stream(prompt, **generation).result()

    async def rewind(self, number: int) -> None:
        """Removes the turn with this number and all later ones.

        Raises :class:`oga.NotFoundError` when there is none, and :class:`oga.InvalidStateError` while a turn goes on.
        """
        await self._take()
        await self._call(partial(self._rewind, number))

    async def fork(self) -> Conversation:
        """A second conversation with the same turns; both go their own ways. Cached blocks are shared.

        Raises :class:`oga.InvalidStateError` while a turn goes on.
        """
        await self._take()
        forked = Conversation(self._owner, self._prompts, self._grammars, self._model, self._options)
        await self._call(partial(self._fork, forked))
        return forked

    async def close(self) -> None:
        """Ends the conversation and a turn that goes on; its cache is free before the next step. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            with contextlib.suppress(EngineClosedError, EngineUnhealthyError):  # the engine took it along
                await asyncio.shield(asyncio.wrap_future(self._owner.submit(self._drop)))

    def replace_answer(self, message: Message) -> None:
        """Puts another message in the place of the last answer, for example one with tool calls.

        Raises :class:`oga.NotFoundError` before the first turn, and :class:`oga.InvalidStateError` while one goes on.
        """
        with self._lock:
            if self._is_busy:
                raise InvalidStateError("A turn of the conversation is going on.")
            if not self._records or self._records[-1].answer is None:
                raise NotFoundError("The conversation has no answer yet.")
            self._records[-1].answer = message

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def __del__(self) -> None:
        request = self._request
        if request is not None:
            self._owner.post(request.close)

    async def _take(self) -> None:
        """Takes the conversation for a turn or a change; waits for a turn whose reader has left."""
        while self._is_busy and self._is_leaving:
            await asyncio.shield(asyncio.wrap_future(self._owner.submit(_nothing)))
        with self._lock:
            if self._is_closed:
                raise InvalidStateError("The conversation is closed.")
            if self._is_busy:
                raise InvalidStateError("A turn of the conversation is going on; one at a time.")
            self._is_busy = True

    def _release(self) -> None:
        self._is_busy = self._is_leaving = False

    async def _call(self, change: Callable[[], None]) -> None:
        """Makes a change on the owner thread; the conversation was taken for it."""

        def change_and_release() -> None:
            try:
                change()
            finally:
                self._release()

        await asyncio.shield(asyncio.wrap_future(self._owner.submit(change_and_release)))

    async def _prepare(self, prompt: Any, encode: Any, settings: dict[str, Any]) -> tuple[Any, ...]:
        await self._take()
        try:
            turn = TurnOfConversation(self, *await self._encode(prompt, encode))
            await self._grammars.prepare(settings)
        except BaseException:
            self._release()
            raise
        return turn, settings

    async def _encode(self, prompt: Any, encode: Any) -> tuple[list[int], bool, tuple[Message, ...]]:
        """What the turn feeds to the model, whether it continues the kept sequence, and the new messages."""
        if is_chat(prompt):
            whole = [*self.messages, *prompt]
            found = await self._prompts.run(self._continuation, whole, encode or self._model.chat_template.encode)
            return (*found, tuple(prompt))
        # What the tokenizer puts before a text begins a sequence, not a turn.
        plain = partial(self._model.tokenizer.encode, add_special_tokens=False) if self._sequence else None
        values = as_int32(await self._prompts.encode(prompt, plain))
        return list(values.pointer[0 : values.length]), True, ()

    def _continuation(self, whole: list[Message], encode: Any) -> tuple[list[int], bool]:
        self._prompts.check_length(whole)
        tokens = [int(token) for token in encode(whole)]
        at = continued_at(self._model.tokenizer.token_bytes, self._sequence, tokens)
        return (tokens, False) if at is None else (tokens[at:], True)

    # The owner thread.

    def _new_request(self) -> Request:
        options = self._options()
        try:
            return self._owner.engine.create_request(options=options)
        finally:
            if options is not None:
                options.close()

    def _rewind(self, number: int) -> None:
        if not 1 <= number <= len(self._records):
            raise NotFoundError(f"The conversation has turns 1 to {len(self._records)}, not {number}.", field="number")
        record = self._records[number - 1]
        if record.engine_turn is not None and self._request is not None:
            self._request.rewind_to_start_of_turn(record.engine_turn)
        else:
            self._drop()
        del self._records[number - 1 :]
        self._sequence = [] if record.start is None else self._sequence[: record.start]

    def _fork(self, forked: Conversation) -> None:
        if self._request is not None:
            forked._request = self._request.fork()
        forked._sequence = list(self._sequence)
        forked._records = [dataclasses.replace(record) for record in self._records]

    def _drop(self) -> None:
        """Lets the request go; the sequence can be computed again."""
        request, self._request = self._request, None
        if request is not None and not request.closed:
            self._owner.turns.close_request(request)
        for record in self._records:
            record.engine_turn = None


class TurnOfConversation:
    """The turn that is going on. Lives on the owner thread, between the engine and the reader."""

    def __init__(
        self, conversation: Conversation, tokens: list[int], continues: bool, messages: tuple[Message, ...]
    ) -> None:
        """``tokens`` continue the kept sequence, or are the whole of another one."""
        self._conversation = conversation
        self._tokens = tokens
        self._continues = continues
        self._messages = messages
        self._texts: list[str] = []
        self._output: list[int] = []

    def begin(self, turns: Turns, settings: Mapping[str, Any], reader: Receiver) -> OpenTurn:
        """Queues the turn; a conversation whose turn is refused stays as it was."""
        kept = self._conversation
        self._reader = reader
        if kept._request is not None and kept._request.closed:
            kept._drop()
        self._is_fresh = kept._request is None or not self._continues
        try:
            request = kept._new_request() if self._is_fresh else kept._request
            before = kept._sequence if self._is_fresh and self._continues else []
            assert request is not None
            try:
                turn = turns.begin(before + self._tokens, settings, self, kept=request)
            except BaseException:
                if self._is_fresh:
                    request.close()
                raise
        except BaseException:
            self.refused()
            raise
        self._turn_id = turn.turn_id
        self._accept(kept, request)
        return turn

    def left(self) -> None:
        """Any thread: nobody reads it any more, so its end is near."""
        self._conversation._is_leaving = True

    def refused(self) -> None:
        """The turn did not begin."""
        self._conversation._release()

    def receive(self, delta: Delta) -> None:
        """Notes output and passes it on; the last piece makes the turn a part of the conversation."""
        self._texts.append(delta.text)
        self._output += delta.token_ids
        if delta.last:
            self._keep()
        self._reader.receive(delta)

    def fail(self, error: OgaError) -> None:
        """Takes the turn out of the sequence before the next step, and only then tells the reader."""
        self._conversation._owner.post(partial(self._undo, error))

    def _accept(self, kept: Conversation, request: Request) -> None:
        if self._is_fresh:
            kept._drop()
            kept._request = request
        if not self._continues:
            kept._sequence = []
            for record in kept._records:
                record.start = None
        # A request that was begun with everything at once has no boundary between the turns before.
        knows_start = self._continues or not kept._records
        self._start = len(kept._sequence) if knows_start else None
        self._engine_turn = self._turn_id if not self._is_fresh or self._start == 0 else None

    def _keep(self) -> None:
        kept = self._conversation
        text = "".join(self._texts)
        answer = {"role": "assistant", "content": text} if self._messages else None
        kept._records.append(Record(self._messages, answer, text, self._output, self._start, self._engine_turn))
        kept._sequence = [*kept._sequence, *self._tokens, *self._output]
        kept._release()

    def _undo(self, error: OgaError) -> None:
        kept = self._conversation
        request = kept._request
        if request is not None and not request.closed:
            if self._is_fresh or kept._owner.failure is not None:
                kept._drop()
            else:
                request.rewind_to_start_of_turn(self._turn_id)
        kept._release()
        self._reader.fail(error)


def _nothing() -> None:
    """A command whose answer says that a step is over."""


def continued_at(token_bytes: Callable[[int], bytes], kept: Sequence[int], whole: Sequence[int]) -> int | None:
    """Where ``whole`` goes on after what ``kept`` says, compared as bytes; None when it says something else.

    Tokens may differ: a model may write a word in other tokens than the tokenizer would.
    """
    said = b"".join(map(token_bytes, kept))
    position = 0
    for index, token in enumerate(whole):
        if position == len(said):
            return index
        piece = token_bytes(token)
        if said[position : position + len(piece)] != piece:
            return None
        position += len(piece)
    return None  # nothing new would be left
