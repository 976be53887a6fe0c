"""The single-owner step loop over one model."""

from __future__ import annotations

import os
import threading
import warnings
from typing import TYPE_CHECKING, Any, Unpack, overload

from oga._native import arguments
from oga._native.check import check, create
from oga._native.handle import Handle, borrowed
from oga._native.loader import ffi, lib
from oga._native.registry import RequestRegistry
from oga.capabilities import EngineCapabilities
from oga.errors import InvalidStateError
from oga.event_buffer import EngineEventBuffer
from oga.model import Model
from oga.request import Request, RequestOptions
from oga.statistics import EngineStatistics
from oga.turn_options import guidance_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oga._native.tokens import Tokens
    from oga.chat import Message
    from oga.stream import Generation, Stream, StreamGroup

__all__ = ["Engine"]


class Engine(Handle):
    """Runs many requests at once over one model and its key-value cache.

    The simplest use::

        with oga.Model("folder") as model, oga.Engine(model) as engine:
            for text in engine.stream("Once upon a time", max_new_tokens=64):
                print(text, end="", flush=True)

    The thread that creates an engine owns it. Any call from another thread, ``close()`` excepted, raises
    :class:`oga.InvalidStateError` and changes nothing. An engine that the program forgets is freed with the Python
    object; when that happens on a foreign thread it is left alone and a ``ResourceWarning`` says so.
    """

    _destroy = "OgaDestroyEngine"

    def __init__(self, model: Model) -> None:
        """Creates an engine and its cache. The model stays loaded as long as the engine lives.

        Raises :class:`oga.ResourceExhaustedError` (a ``MemoryError``) when the cache does not fit in memory, saying how
        much was wanted and found.
        """
        with borrowed(arguments.kind(model, Model, "model")) as source:
            pointer = create("OgaEngine", lib.OgaCreateEngine, source)
        super().__init__(pointer, _release, threading.get_ident())
        self._preparing = threading.Lock()  # taken before _guard
        self._model = model
        self._registry = RequestRegistry()
        self._streams: StreamGroup | None = None

    def close(self) -> None:
        """Ends the engine: every request becomes a closed one, event buffers keep their last events. Idempotent.

        Any thread; waits for a call in progress on another thread.
        """
        if self.closed:  # in a forked child another thread's lock stays taken
            return
        with self._preparing, self._guard:
            if self._native is not None:
                pointer, self._native = self._native, None
                self._finalizer.detach()
                lib.OgaDestroyEngine(pointer)

    @property
    def model(self) -> Model:
        """The model object this engine was created from; it may be closed."""
        return self._model

    def create_request(self, *, options: RequestOptions | None = None) -> Request:
        """Creates a request. It holds no cache until its first turn is scheduled; their number is not limited.

        Raises :class:`oga.InvalidArgumentError` for limits outside the model's, and
        :class:`oga.EngineUnhealthyError` after a fatal failure.
        """
        given = None if options is None else arguments.kind(options, RequestOptions, "options")
        with self._guard, borrowed(given) as chosen:
            pointer = create("OgaRequest", lib.OgaEngineCreateRequest, self._pointer, chosen)
            return Request._take(pointer, self._registry)

    def create_event_buffer(self, capacity: int) -> EngineEventBuffer:
        """Creates a buffer bound for life to this engine.

        ``capacity`` is the most events one run may hand out through it: 0 to 1,048,576. Raises
        :class:`oga.InvalidArgumentError` for more.
        """
        slots = arguments.uint64(capacity, "capacity")
        with self._guard:
            pointer = create("OgaEngineEventBuffer", lib.OgaCreateEngineEventBuffer, self._pointer, slots)
            return EngineEventBuffer._take(pointer, slots, self._registry)

    def run(self, buffer: EngineEventBuffer) -> EngineEventBuffer:
        """Makes progress and returns ``buffer``.

        Hands out retained events if there are any, else executes at most one step, and fills the buffer with up to its
        capacity of events; the rest is retained for later calls. A step may commit without an event (a part of a long
        prompt). Capacity 0 checks the thread and the engine's health and does nothing else. Other Python threads run
        meanwhile.

        An accepted run ends every view borrowed from the buffer. Raises :class:`oga.EngineUnhealthyError` with the
        stored failure once its events are drained, and :class:`oga.InvalidStateError` while streams of
        :meth:`stream` are open, which run the engine themselves; on an error the buffer keeps its content.
        """
        slots = arguments.kind(buffer, EngineEventBuffer, "buffer")
        if self._streams is not None and self._streams.is_open:
            raise InvalidStateError(
                "Engine.run would take events away from the open streams of Engine.stream. "
                "Read or close the streams first, or use begin_turn and run for everything."
            )
        return self._run(slots)

    def _run(self, buffer: EngineEventBuffer) -> EngineEventBuffer:
        with self._guard, buffer._guard:
            check(lib.OgaEngineRun(self._pointer, buffer._pointer))
            buffer._accept_run()
        return buffer

    def has_pending_requests(self) -> bool:
        """Whether a run has something to do: retained events or turns that are not finished.

        Also reclaims requests that the program dropped.
        """
        out = ffi.new("bool *")
        self._call(lib.OgaEngineHasPendingRequests, out)
        return bool(out[0])

    def get_capabilities(self) -> EngineCapabilities:
        """A snapshot of the fixed limits. Works on an unhealthy engine."""
        with self._guard:
            return EngineCapabilities._take(
                create("OgaEngineCapabilities", lib.OgaEngineGetCapabilities, self._pointer)
            )

    def get_statistics(self) -> EngineStatistics:
        """A snapshot of the counters. Works on an unhealthy engine."""
        with self._guard:
            return EngineStatistics._take(create("OgaEngineStatistics", lib.OgaEngineGetStatistics, self._pointer))

    def prepare_guidance(self, guidance_type: str, guidance_data: str | Mapping[str, Any] = "") -> None:
        """Compiles a grammar ahead of the turns that will follow it, on the calling thread.

        Any thread, also while another one runs the engine. :meth:`oga.Request.begin_turn` compiles a grammar that it
        does not know, and one made to be slow takes it a second, in which nobody gets a token; one that was prepared it
        finds. The last 32 are kept. :class:`oga.AsyncEngine` and the server prepare every grammar.

        The arguments are those of :meth:`oga.TurnOptions.set_guidance`; delimited guidance is prepared as
        ``"lark_grammar"``. Raises what :meth:`oga.Request.begin_turn` raises for the grammar.
        """
        kind, text = guidance_arguments(guidance_type, guidance_data)
        self._pointer  # noqa: B018 (raises in a forked child, where another thread's lock stays taken)
        with self._preparing:  # of one engine one at a time; close() waits
            check(lib.OgaEnginePrepareGuidance(self._pointer, kind, text))

    def drop_prefix_cache(self) -> None:
        """Forgets every cached beginning that no request owns; nothing that a request generates depends on it."""
        self._call(lib.OgaEngineDropPrefixCache)

    def set_trace_file(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None) -> None:
        """Writes one JSON object per attempted step, a line each, to a file; None ends tracing.

        A line tells the step's rows, the requests that waited and for what, what was dropped, the outcome, and
        microseconds per phase. ``oga trace FILE`` summarises and draws it.

        The file is created or emptied. Raises :class:`oga.FileAccessError` (an ``OSError``) naming the path and the
        reason. A line that cannot be written later ends the trace with a warning, never a step.
        """
        self._call(lib.OgaEngineSetTraceFile, ffi.NULL if path is None else arguments.path_bytes(path, "path"))

    @overload
    def stream(
        self,
        prompt: str | Sequence[Message],
        *,
        options: RequestOptions | None = None,
        **generation: Unpack[Generation],
    ) -> Stream[str]: ...

    @overload
    def stream(
        self, prompt: Tokens, *, options: RequestOptions | None = None, **generation: Unpack[Generation]
    ) -> Stream[int]: ...

    def stream(
        self,
        prompt: str | Sequence[Message] | Tokens,
        *,
        options: RequestOptions | None = None,
        **generation: Unpack[Generation],
    ) -> Stream[str] | Stream[int]:
        """Generates from ``prompt`` and returns an iterator over what comes out, piece by piece.

        ======================================================  ============================  =========
        ``prompt``                                              is encoded by                 pieces
        ======================================================  ============================  =========
        text                                                    the folder's tokenizer        text
        messages: ``[{"role": "user", "content": "Hello!"}]``   the folder's chat template    text
        token ids, as for :meth:`oga.Request.begin_turn`        nobody                        token ids
        ======================================================  ============================  =========

        No piece of text ends inside a character, and the pieces add up to the decoded whole. The turn is queued at
        once; iterating runs the engine.

        Any number of streams may be open; a step that one of them runs serves all of them, so ``zip`` over several
        streams generates in batches. Hand-driven turns and streams do not mix: :meth:`run` is refused while a stream is
        open, and a stream refuses to go on while another request has an unfinished turn; no event is lost either way.

        Keywords: ``max_new_tokens``, ``min_new_tokens``, and the others of :class:`oga.TurnOptions`. What is not given
        takes the model's default; a warper alone (``temperature``, ``top_k``, ``top_p``, ``min_p`` ...) turns sampling
        on, unless it asks for the most likely token (temperature 0, top_k 1).

        Raises what :meth:`oga.Request.begin_turn` raises, and :class:`oga.MissingFileError` for text when the model
        folder has no ``tokenizer.json``, for messages when it has no chat template.
        """
        from oga.stream import open_stream

        return open_stream(self, prompt, options, generation)


def _release(pointer: Any, owner: int) -> None:
    """Frees a forgotten engine, unless the garbage collector found it on a thread that does not own it."""
    if threading.get_ident() == owner:
        lib.OgaDestroyEngine(pointer)
    else:
        warnings.warn(
            "An oga.Engine was dropped on a thread that does not own it; its memory stays until the process ends. "
            "Close an engine explicitly, or use it in a with statement.",
            ResourceWarning,
            stacklevel=2,
        )
