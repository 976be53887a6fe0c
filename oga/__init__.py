"""oga runs language models exported to ONNX, many conversations at once, in this process.

    import oga

    with oga.Model("folder") as model, oga.Engine(model) as engine:
        for text in engine.stream("Once upon a time", max_new_tokens=64):
            print(text, end="", flush=True)

Names are loaded when they are first used, so importing oga costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oga.aio import AsyncEngine, AsyncStream, Conversation, ConversationTurn
    from oga.capabilities import EngineCapabilities
    from oga.chat import ChatTemplate
    from oga.config import Config
    from oga.engine import Engine
    from oga.errors import (
        ArgumentTypeError,
        EngineClosedError,
        EngineUnhealthyError,
        FileAccessError,
        InternalError,
        InvalidArgumentError,
        InvalidStateError,
        MissingFileError,
        ModelError,
        NotFoundError,
        OgaError,
        OutOfMemoryError,
        PromptTooLongError,
        QueueFullError,
        ResourceExhaustedError,
        UnsupportedError,
    )
    from oga.event import EngineErrorCode, EngineEvent, EngineEventFlags, ErrorCode, FailureKind, FinishReason
    from oga.event_buffer import EngineEventBuffer, EventColumns
    from oga.generation import Delta, Result, Timings
    from oga.llm import LLM
    from oga.log import set_log_bool, set_log_callback, set_log_options
    from oga.logprobs import TokenLogprob, TokenLogprobs
    from oga.model import Model
    from oga.request import Request, RequestOptions
    from oga.result import StatusCode
    from oga.runtime import (
        get_api_version,
        get_cpu_isa,
        get_include,
        get_llguidance_version,
        get_ort_version,
        set_llguidance_library,
        set_ort_extensions_library,
        set_ort_library,
        shutdown,
    )
    from oga.sequences import Sequences
    from oga.statistics import EngineStatistics
    from oga.stream import Stream
    from oga.string_array import StringArray
    from oga.tokenizer import Tokenizer, TokenizerStream
    from oga.turn_options import SamplingSettings, TurnOptions, TurnSettings
    from oga.usage import TurnUsage

__version__ = "0.1.0"

__all__ = [
    "LLM",
    "ArgumentTypeError",
    "AsyncEngine",
    "AsyncStream",
    "ChatTemplate",
    "Config",
    "Conversation",
    "ConversationTurn",
    "Delta",
    "Engine",
    "EngineCapabilities",
    "EngineClosedError",
    "EngineErrorCode",
    "EngineEvent",
    "EngineEventBuffer",
    "EngineEventFlags",
    "EngineStatistics",
    "EngineUnhealthyError",
    "ErrorCode",
    "EventColumns",
    "FailureKind",
    "FileAccessError",
    "FinishReason",
    "InternalError",
    "InvalidArgumentError",
    "InvalidStateError",
    "MissingFileError",
    "Model",
    "ModelError",
    "NotFoundError",
    "OgaError",
    "OutOfMemoryError",
    "PromptTooLongError",
    "QueueFullError",
    "Request",
    "RequestOptions",
    "ResourceExhaustedError",
    "Result",
    "SamplingSettings",
    "Sequences",
    "StatusCode",
    "Stream",
    "StringArray",
    "Timings",
    "TokenLogprob",
    "TokenLogprobs",
    "Tokenizer",
    "TokenizerStream",
    "TurnOptions",
    "TurnSettings",
    "TurnUsage",
    "UnsupportedError",
    "__version__",
    "get_api_version",
    "get_cpu_isa",
    "get_include",
    "get_llguidance_version",
    "get_ort_version",
    "set_llguidance_library",
    "set_log_bool",
    "set_log_callback",
    "set_log_options",
    "set_ort_extensions_library",
    "set_ort_library",
    "shutdown",
]

_HOMES = {
    "aio": ("AsyncEngine", "AsyncStream", "Conversation", "ConversationTurn"),
    "capabilities": ("EngineCapabilities",),
    "chat": ("ChatTemplate",),
    "config": ("Config",),
    "engine": ("Engine",),
    "errors": (
        "ArgumentTypeError",
        "EngineClosedError",
        "EngineUnhealthyError",
        "FileAccessError",
        "InternalError",
        "InvalidArgumentError",
        "InvalidStateError",
        "MissingFileError",
        "ModelError",
        "NotFoundError",
        "OgaError",
        "OutOfMemoryError",
        "PromptTooLongError",
        "QueueFullError",
        "ResourceExhaustedError",
        "UnsupportedError",
    ),
    "event": ("EngineErrorCode", "EngineEvent", "EngineEventFlags", "ErrorCode", "FailureKind", "FinishReason"),
    "event_buffer": ("EngineEventBuffer", "EventColumns"),
    "generation": ("Delta", "Result", "Timings"),
    "llm": ("LLM",),
    "log": ("set_log_bool", "set_log_callback", "set_log_options"),
    "logprobs": ("TokenLogprob", "TokenLogprobs"),
    "model": ("Model",),
    "request": ("Request", "RequestOptions"),
    "result": ("StatusCode",),
    "runtime": (
        "get_api_version",
        "get_cpu_isa",
        "get_include",
        "get_llguidance_version",
        "get_ort_version",
        "set_llguidance_library",
        "set_ort_extensions_library",
        "set_ort_library",
        "shutdown",
    ),
    "sequences": ("Sequences",),
    "statistics": ("EngineStatistics",),
    "stream": ("Stream",),
    "string_array": ("StringArray",),
    "tokenizer": ("Tokenizer", "TokenizerStream"),
    "turn_options": ("SamplingSettings", "TurnOptions", "TurnSettings"),
    "usage": ("TurnUsage",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'oga' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"oga.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
