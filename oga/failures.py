"""From the kind of a turn's failure to the exception that says so."""

from __future__ import annotations

from oga.errors import EngineUnhealthyError, ModelError, OgaError
from oga.event import FailureKind

__all__ = ["OF_THE_ENGINE", "turn_error"]

OF_THE_ENGINE = frozenset({FailureKind.EXECUTION, FailureKind.CONTRACT})
"""The kinds that take the engine along, and every open turn with it."""

# The class, the field where one option is the cause, and what to say.
_FAILURES: dict[FailureKind, tuple[type[OgaError], str | None, str]] = {
    FailureKind.BAD_LOGITS: (
        ModelError,
        None,
        "The turn failed, and no other: the model gave numbers that no token can be chosen from (NaN or infinity). "
        "Another prompt may do; when it comes back, convert the model again, or in another precision.",
    ),
    FailureKind.NO_ALLOWED_TOKEN: (
        ModelError,
        None,
        "The turn failed, and no other: its options and its guidance left no token to choose. Look at allowed_tokens, "
        "banned_sequences, min_generated_tokens and the grammar, which have to leave one together.",
    ),
    FailureKind.GRAMMAR_FAILED: (
        ModelError,
        "guidance",
        "The turn failed, and no other: its guidance became too complex to follow (the log says why). Simplify the "
        "grammar: fewer alternatives and bounds.",
    ),
    FailureKind.NEVER_FITS: (
        ModelError,
        None,
        "The turn failed, and no other: its sequence can never fit the engine's cache. Shorten it, or configure more "
        "engine.dynamic_batching.num_blocks.",
    ),
    FailureKind.EXECUTION: (
        EngineUnhealthyError,
        None,
        "The turn failed with the engine: the model could not be run. The engine's next call says why; close it and "
        "create another.",
    ),
    FailureKind.CONTRACT: (
        EngineUnhealthyError,
        None,
        "The turn failed with the engine: a promise inside oga was broken. The engine's next call says which; close it "
        "and create another, and report it.",
    ),
}


def turn_error(kind: FailureKind, cause: OgaError | None = None) -> OgaError:
    """The exception for a turn that ended FAILED; ``cause`` is what the engine says of its own failure."""
    error_type, field, message = _FAILURES[kind]
    error = error_type(message if cause is None else str(cause), field=field)
    error.failure = kind
    error.__cause__ = cause
    return error
