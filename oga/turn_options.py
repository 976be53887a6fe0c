"""How one turn generates."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from oga._native import arguments
from oga._native.check import check, create
from oga._native.handle import Handle, borrowed
from oga._native.loader import ffi, lib
from oga._native.sampling_table import INTEGERS, NUMBERS, ScalarOptions
from oga._native.tokens import Tokens, as_int32
from oga.errors import ArgumentTypeError, InvalidArgumentError, about
from oga.request import Request
from oga.sequences import Sequences
from oga.string_array import StringArray

if TYPE_CHECKING:
    from typing import Unpack

__all__ = ["SamplingSettings", "TurnOptions", "TurnSettings"]


class SamplingSettings(ScalarOptions, total=False):
    """The keywords that :class:`oga.TurnOptions` and :meth:`oga.Engine.stream` share; None leaves one unset.

    The reference page "Sampling options" says what each does, what is legal and what the default is.
    """

    seed: int | None
    logit_bias: Mapping[int, float] | None
    stop_tokens: Tokens | None
    banned_sequences: Iterable[Tokens] | None
    allowed_tokens: Tokens | None
    dry_breakers: Tokens | None
    stop_strings: Iterable[str] | None
    logprobs: int | None
    logprob_tokens: Tokens | None
    prompt_logprobs: int | None
    guidance: tuple[str, str | Mapping[str, Any]] | None
    delimited_guidance: tuple[int, int, str] | None


class TurnSettings(SamplingSettings, total=False):
    """The keywords of :class:`oga.TurnOptions`; None leaves one unset."""

    max_generated_tokens: int | None
    min_generated_tokens: int | None
    emit_text: bool | None


class TurnOptions(Handle):
    """The options of one request's turns, reusable for any number of them. Everything unset takes the model's default.

    Bound to the request, which it does not keep alive, and to the thread that owns the engine. A setter that refuses a
    value raises :class:`oga.InvalidArgumentError` and keeps the previous one.
    """

    _destroy = "OgaDestroyTurnOptions"

    def __init__(self, request: Request, **settings: Unpack[TurnSettings]) -> None:
        """Creates an option set for ``request``; keywords are those of :class:`oga.TurnSettings`.

        Raises :class:`oga.InvalidStateError` on a closed request, :class:`oga.InvalidArgumentError` for guidance of
        both kinds, and what the setters raise; ``error.field`` is the keyword.
        """
        owned = arguments.kind(request, Request, "request")
        unknown = settings.keys() - _SETTERS.keys()
        if unknown:
            name = sorted(unknown)[0]
            near = difflib.get_close_matches(name, _SETTERS, n=1, cutoff=0.0)[0]
            raise ArgumentTypeError(f"TurnOptions has no keyword {name!r}; the nearest one is {near!r}.", field=name)
        if settings.get("guidance") is not None and settings.get("delimited_guidance") is not None:
            raise InvalidArgumentError(
                "guidance and delimited_guidance are both given; a turn follows one of them. Leave the other one out.",
                field="delimited_guidance",
            )
        with borrowed(owned) as owner:
            super().__init__(create("OgaTurnOptions", lib.OgaRequestCreateTurnOptions, owner))
        for name, value in settings.items():
            if value is not None:
                with about(name):
                    _SETTERS[name](self, value)

    def reset(self) -> None:
        """Unsets every option; the binding to the request stays."""
        self._call(lib.OgaTurnOptionsReset)

    def set_max_generated_tokens(self, max_generated_tokens: int) -> None:
        """Ends the turn after this many output tokens; 0 unsets (no limit but the session's)."""
        value = arguments.uint64(max_generated_tokens, "max_generated_tokens")
        self._call(lib.OgaTurnOptionsSetMaxGeneratedTokens, value)

    def set_min_generated_tokens(self, min_generated_tokens: int) -> None:
        """Keeps every EOS id and stop token from being chosen before this many output tokens; 0 unsets."""
        value = arguments.uint64(min_generated_tokens, "min_generated_tokens")
        self._call(lib.OgaTurnOptionsSetMinGeneratedTokens, value)

    def set_do_sample(self, do_sample: bool) -> None:
        """Draws tokens at random (True) or takes the most likely one (False)."""
        self._call(lib.OgaTurnOptionsSetDoSample, arguments.boolean(do_sample, "do_sample"))

    def set_temperature(self, temperature: float) -> None:
        """Divides the logits before drawing; finite and >= 0, where 0 means the most likely token."""
        self._call(lib.OgaTurnOptionsSetTemperature, arguments.number(temperature, "temperature"))

    def set_top_k(self, top_k: int) -> None:
        """Draws among the k most likely tokens; >= 0, where 0 and anything from the vocabulary size up are off."""
        self._call(lib.OgaTurnOptionsSetTopK, arguments.int32(top_k, "top_k"))

    def set_top_p(self, top_p: float) -> None:
        """Draws among the smallest set of tokens whose probability reaches p; in [0, 1], where 0 and 1 are off."""
        self._call(lib.OgaTurnOptionsSetTopP, arguments.number(top_p, "top_p"))

    def set_repetition_penalty(self, repetition_penalty: float) -> None:
        """Makes tokens of the prompt and the output less likely; finite and > 0, where 1 is off.

        A positive logit is divided by the penalty, any other multiplied.
        """
        value = arguments.number(repetition_penalty, "repetition_penalty")
        self._call(lib.OgaTurnOptionsSetRepetitionPenalty, value)

    def set_no_repeat_ngram_size(self, no_repeat_ngram_size: int) -> None:
        """Never completes a run of this many tokens that the sequence already holds; >= 0, where 0 is off."""
        value = arguments.int32(no_repeat_ngram_size, "no_repeat_ngram_size")
        self._call(lib.OgaTurnOptionsSetNoRepeatNgramSize, value)

    def set_number(self, name: str, value: float) -> None:
        """Sets an option of the reference page "Sampling options" by its name, for example ``"min_p"``; ``"seed"`` too.

        Raises :class:`oga.InvalidArgumentError` for an unknown name (naming the nearest one), for a value outside the
        option's range, for a fraction where it takes an integer, and for an option that is true or false.
        """
        number = arguments.number(value, name)
        self._call(lib.OgaTurnOptionsSetNumber, arguments.c_text(name, "name"), number)

    def set_bool(self, name: str, value: bool) -> None:
        """Sets an option that is true or false by its name, for example ``"ignore_eos"``."""
        chosen = arguments.boolean(value, name)
        self._call(lib.OgaTurnOptionsSetBool, arguments.c_text(name, "name"), chosen)

    def set_logit_bias(self, logit_bias: Mapping[int, float]) -> None:
        """Adds a bias to the logits of some tokens, after the penalties; an empty mapping unsets.

        Raises :class:`oga.InvalidArgumentError` for a negative id and a bias that is not finite. An id beyond the
        vocabulary is refused by :meth:`oga.Request.begin_turn`; so it is in the lists below.
        """
        if not isinstance(logit_bias, Mapping):
            raise ArgumentTypeError(
                f"logit_bias must map token ids to biases, not {type(logit_bias).__name__}.", field="logit_bias"
            )
        tokens = as_int32(list(logit_bias), "logit_bias")
        with about("logit_bias"):
            biases = [arguments.number(bias, f"logit_bias[{token}]") for token, bias in logit_bias.items()]
        self._call(lib.OgaTurnOptionsSetLogitBias, tokens.pointer, ffi.new("float[]", biases), tokens.length)

    def set_stop_tokens(self, stop_tokens: Tokens) -> None:
        """Ends the turn at any of these tokens, with finish reason EOS; an empty sequence unsets.

        The token is emitted, counted and kept in the sequence. They end the turn under ``ignore_eos`` too; without
        that, one of the model's own EOS ids ends it unseen, as ever.
        """
        tokens = as_int32(stop_tokens, "stop_tokens")
        self._call(lib.OgaTurnOptionsSetStopTokens, tokens.pointer, tokens.length)

    def set_banned_sequences(self, banned_sequences: Iterable[Tokens]) -> None:
        """Never lets the sequence end in one of these: the token that would complete one is not chosen.

        A sequence of one token excludes that token. No sequence at all unsets.

        Raises :class:`oga.InvalidArgumentError` for an empty sequence.
        """
        with about("banned_sequences"), Sequences() as sequences:
            for index, tokens in enumerate(_iterated(banned_sequences, "banned_sequences")):
                values = as_int32(tokens, f"banned_sequences[{index}]")
                check(lib.OgaAppendTokenSequence(values.pointer, values.length, sequences._pointer))
            self._call(lib.OgaTurnOptionsSetBannedSequences, sequences._pointer)

    def set_allowed_tokens(self, allowed_tokens: Tokens) -> None:
        """Chooses among these tokens only; an EOS id ends the turn only when it is one of them. An empty one unsets."""
        tokens = as_int32(allowed_tokens, "allowed_tokens")
        self._call(lib.OgaTurnOptionsSetAllowedTokens, tokens.pointer, tokens.length)

    def set_dry_breakers(self, dry_breakers: Tokens) -> None:
        """Tokens across which DRY sees no repetition, and which it never penalises; an empty sequence unsets."""
        tokens = as_int32(dry_breakers, "dry_breakers")
        self._call(lib.OgaTurnOptionsSetDryBreakers, tokens.pointer, tokens.length)

    def set_stop_strings(self, stop_strings: Iterable[str | bytes]) -> None:
        """Ends the turn where the text of its output completes one of these strings, with finish reason STOP_STRING.

        A match may begin and end inside tokens; it never reaches back into a prompt. Of several matches the one that
        ends first counts, then the longest, then the lowest index. The token that completes it is emitted, counted and
        kept in the sequence; the visible text ends before the match. No string at all unsets.

        At most 16 strings of 16,384 bytes in all, none empty, else :class:`oga.InvalidArgumentError`; a bare string is
        refused. A turn with stop strings needs the model's tokenizer.
        """
        with about("stop_strings"), StringArray(stop_strings) as strings:
            self._call(lib.OgaTurnOptionsSetStopStrings, strings._pointer)

    def set_emit_text(self, emit_text: bool, *, include_special_tokens: bool = False) -> None:
        """Lets the turn's events carry :attr:`oga.EngineEvent.text`; needs the model's tokenizer.

        Stop strings act on the same text: with or without special tokens written out.
        """
        self._call(
            lib.OgaTurnOptionsSetEmitText,
            arguments.boolean(emit_text, "emit_text"),
            arguments.boolean(include_special_tokens, "include_special_tokens"),
        )

    def set_guidance(self, guidance_type: str, guidance_data: str | Mapping[str, Any] = "") -> None:
        """Makes the turn's output follow a grammar from its first token on.

        ==================  =====================================================================
        ``guidance_type``   ``guidance_data``
        ==================  =====================================================================
        ``"json_schema"``   a JSON schema, as text or as a mapping; the output is one JSON value that it accepts
        ``"json_object"``   nothing; the output is any JSON object
        ``"regex"``         a regular expression that the whole output matches
        ``"lark_grammar"``  a grammar in llguidance's variant of Lark's language; ``"lark"`` for short
        ==================  =====================================================================

        The turn ends with finish reason EOS where the grammar is complete, also below a minimum of tokens. The grammar
        is compiled by :meth:`oga.Request.begin_turn`, unless :meth:`oga.Engine.prepare_guidance` did that before.
        Either raises :class:`oga.InvalidArgumentError` naming the keyword or the position that is wrong, also for a
        keyword of a schema that cannot be enforced, and :class:`oga.UnsupportedError` when the package ``llguidance``
        is not installed.

        Raises :class:`oga.InvalidArgumentError` for another type and for empty data, and
        :class:`oga.InvalidStateError` while delimited guidance is set.
        """
        self._call(lib.OgaTurnOptionsSetGuidance, *guidance_arguments(guidance_type, guidance_data))

    def set_delimited_guidance(self, opening_token: int, closing_token: int, grammar: str) -> None:
        """Makes what the turn writes between two tokens follow a Lark grammar, any number of times.

        Text is free outside.

        Raises :class:`oga.InvalidArgumentError` for equal or negative tokens, and :class:`oga.InvalidStateError` while
        guidance of the whole turn is set; otherwise as :meth:`set_guidance`.
        """
        self._call(
            lib.OgaTurnOptionsSetDelimitedGuidance,
            arguments.int32(opening_token, "opening_token"),
            arguments.int32(closing_token, "closing_token"),
            arguments.c_text(grammar, "grammar"),
        )

    def clear_guidance(self) -> None:
        """Unsets guidance of either kind."""
        self._call(lib.OgaTurnOptionsClearGuidance)

    def set_logprobs(self, top: int | None, *, processed: bool = False) -> None:
        """Lets token events carry the log-probabilities of the token and of the ``top`` most likely ones, 0 to 20.

        None unsets. With ``processed`` they are those of the distribution after the penalties, biases and masks (before
        temperature and what narrows the choice), else the model's own.
        """
        value = _count_or_unset(top, "logprobs")
        self._call(lib.OgaTurnOptionsSetLogprobs, value, arguments.boolean(processed, "processed"))

    def set_logprob_tokens(self, tokens: Tokens) -> None:
        """Log-probabilities of these tokens too, at most 1,024, whether likely or not; an empty sequence unsets."""
        values = as_int32(tokens, "logprob_tokens")
        self._call(lib.OgaTurnOptionsSetLogprobTokens, values.pointer, values.length)

    def set_prompt_logprobs(self, top: int | None) -> None:
        """Lets the turn's first event carry the log-probability of every input token, and the ``top`` most likely ones.

        0 to 20; None unsets. Each is the model's own, given all tokens before it. The input is computed whole, in
        smaller steps and without the prefix cache.
        """
        self._call(lib.OgaTurnOptionsSetPromptLogprobs, _count_or_unset(top, "prompt_logprobs"))

    def set_seed(self, seed: int) -> None:
        """Makes the turn's draws reproducible; every value in [0, 2**64), 0 too, is a seed.

        A later unseeded turn continues from it.
        """
        self._call(lib.OgaTurnOptionsSetSeed, arguments.uint64(seed, "seed"))

    def clear_seed(self) -> None:
        """Unsets the seed."""
        self._call(lib.OgaTurnOptionsClearSeed)


def guidance_arguments(guidance_type: str, guidance_data: str | Mapping[str, Any]) -> tuple[bytes, bytes]:
    """Type and text of a grammar as the library takes them."""
    kind = arguments.c_text(guidance_type, "guidance_type")
    text = _schema_text(guidance_data) if isinstance(guidance_data, Mapping) else guidance_data
    if text is not guidance_data and kind != b"json_schema":
        raise ArgumentTypeError(
            f"guidance_data is a mapping; only a json_schema may be one, not {guidance_type!r}.", field="guidance_data"
        )
    return kind, arguments.c_text(text, "guidance_data")


def _schema_text(schema: Mapping[str, Any]) -> str:
    try:
        return json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"guidance_data is no JSON schema: {error}.", field="guidance_data") from None


def _count_or_unset(top: int | None, name: str) -> int:
    if top is None:
        return -1
    value = arguments.int32(top, name)
    if value < 0:
        raise InvalidArgumentError(f"{name} is {value}; it must be from 0 to 20, or None.", field=name)
    return value


def _pair(value: Any, name: str) -> tuple[Any, Any]:
    if isinstance(value, str) or not isinstance(value, Iterable) or len(parts := tuple(value)) != 2:
        raise ArgumentTypeError(f'{name} must be a pair of type and data, such as ("regex", "[0-9]+").', field=name)
    return parts


def _iterated(values: Any, name: str) -> Iterator[Any]:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise ArgumentTypeError(
            f"{name} must be a sequence of token sequences, not {type(values).__name__}.", field=name
        )
    return iter(values)


def _integer_setter(name: str) -> Callable[[TurnOptions, Any], None]:
    return lambda options, value: options.set_number(name, arguments.int32(value, name))


def _number_setter(name: str) -> Callable[[TurnOptions, Any], None]:
    return lambda options, value: options.set_number(name, value)


_SETTERS: dict[str, Callable[[TurnOptions, Any], None]] = {
    **{name: _integer_setter(name) for name in INTEGERS},
    **{name: _number_setter(name) for name in NUMBERS},
    "ignore_eos": lambda options, value: options.set_bool("ignore_eos", value),
    "do_sample": TurnOptions.set_do_sample,
    "max_generated_tokens": TurnOptions.set_max_generated_tokens,
    "min_generated_tokens": TurnOptions.set_min_generated_tokens,
    "seed": TurnOptions.set_seed,
    "logit_bias": TurnOptions.set_logit_bias,
    "stop_tokens": TurnOptions.set_stop_tokens,
    "banned_sequences": TurnOptions.set_banned_sequences,
    "allowed_tokens": TurnOptions.set_allowed_tokens,
    "dry_breakers": TurnOptions.set_dry_breakers,
    "stop_strings": TurnOptions.set_stop_strings,
    "emit_text": TurnOptions.set_emit_text,
    "guidance": lambda options, value: options.set_guidance(*_pair(value, "guidance")),
    "delimited_guidance": lambda options, value: options.set_delimited_guidance(*value),
    "logprobs": TurnOptions.set_logprobs,
    "logprob_tokens": TurnOptions.set_logprob_tokens,
    "prompt_logprobs": TurnOptions.set_prompt_logprobs,
}
