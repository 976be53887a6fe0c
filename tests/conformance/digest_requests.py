"""The 200 requests of the digest: prompts, options and what becomes of each, drawn from a number of their own.

A request depends on its index only, so that one more of them, or one option more, leaves the others as they are. A
new option of a turn or of a request is drawn at the end of its function, for the same reason.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import oga

COUNT = 200
SHAPES = ("single",) * 15 + ("continued", "continued", "rewound", "forked", "cancelled")
GUIDED = 0.17
# With one of these a guided turn may meet a token that its grammar forces and its options rule out.
RULES = ("stop_tokens", "banned_sequences", "allowed_tokens", "no_repeat_ngram_size")

QUESTIONS = (
    "What is the capital of France?",
    "Write one sentence about the sea.",
    "Why is the sky blue?",
    "Name three colors.",
    "Is seven a prime number?",
    "Say hello in Spanish.",
    "Answer with yes or no: is ice cold?",
)
BEGINNINGS = (
    "Once upon a time there was",
    "The best way to learn is",
    "def add(a, b):\n    return",
    "Ingredients: 2 eggs, 100 g of sugar,",
    "naïve café, Straße, 日本語 and 🙂 are",
    "1, 2, 3, 4, 5,",
    "Dear Sir or Madam,\n\n",
)
REPETITIONS = (
    "one two three, one two three, one two",
    "the cat and the dog and the cat and the dog and the cat and the",
    "a b c d a b c d a b c d a b c",
    "1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2,",
    "She said yes. He said no. She said yes. He said no. She said",
)
CONTINUATIONS = (
    " and then",
    "<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_end|>\n<|im_start|>user\nSay it again.<|im_end|>\n<|im_start|>assistant\n",
    ". But",
    "\n",
)
SENTENCES = (
    "The river runs from the mountains to the sea.",
    "In winter it freezes, and in spring it floods the fields.",
    "People have lived here for more than 3,000 years.",
    "They built bridges, mills and a small harbour.",
    "Every summer there is a market where they sell bread, cheese and honey.",
)
COMMON = (
    " the",
    " a",
    ".",
    ",",
    "\n",
    " is",
    " of",
    " and",
    " to",
    "The",
    "I",
    " in",
    "1",
    " you",
    "!",
    " sea",
    " was",
)
SCHEMA = {
    "type": "object",
    "properties": {"name": {"enum": ["Anna", "Bert"]}, "age": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
GRAMMARS: tuple[tuple[str, Any], ...] = (
    ("json_schema", SCHEMA),
    ("json_schema", json.dumps({"enum": ["a long constant", "a long story", 12]})),
    ("json_object", ""),
    ("regex", "[0-9]{2}-[a-f]{2}"),
    ("regex", r"(yes|no|maybe), (of course|never)\."),
    ("lark_grammar", 'start: "[" item ("," item){1,3} "]"\nitem: /[a-c]{2}/ | "é" | "水"'),
    ("lark", 'start: "The answer is " /[a-z]{1,6}/ "."'),
)
FORCED = (
    '{"name": "',
    '", "age": ',
    "}",
    "a long",
    " constant",
    "-",
    ", of course",
    " never",
    ".",
    "The answer is",
    '"',
)
DELIMITERS = (4, 5)
DELIMITED = 'start: "yes" | "no, never" | /[0-9]{2}/'
END = 2


@dataclasses.dataclass(frozen=True)
class Turn:
    """One turn: its input and its options; ``cancel_after`` so many tokens the host cancels it, unless that is 0."""

    prompt: tuple[int, ...]
    settings: dict[str, Any]
    processed_logprobs: bool
    special_text: bool
    cancel_after: int = 0

    @property
    def guided(self) -> bool:
        return not self.settings.keys().isdisjoint(("guidance", "delimited_guidance"))

    @property
    def greedy(self) -> bool:
        return not self.settings.get("do_sample") or self.settings.get("temperature") == 0


@dataclasses.dataclass(frozen=True)
class Plan:
    """One request with its turns. What is done with them depends on ``shape``, see ``digest_engine.perform``."""

    index: int
    shape: str
    options: dict[str, int]
    turns: tuple[Turn, ...]

    @property
    def group(self) -> str:
        """``forced_rules`` for a guided turn whose options may rule a forced token out, else ``rest``."""
        ruled = any(turn.guided and not turn.settings.keys().isdisjoint(RULES) for turn in self.turns)
        return "forced_rules" if ruled else "rest"

    def __str__(self) -> str:
        turns = [
            f"  {len(turn.prompt)} tokens, {json.dumps(turn.settings, ensure_ascii=False)}"
            + ", processed log-probabilities" * turn.processed_logprobs
            + (f", cancelled after {turn.cancel_after} tokens" if turn.cancel_after else "")
            for turn in self.turns
        ]
        return "\n".join([f"request {self.index}: {self.shape}, {self.options}", *turns])


def draw_plans(tokenizer: oga.Tokenizer, template: oga.ChatTemplate) -> list[Plan]:
    """The requests in their order."""
    words = Words(tokenizer, template)
    return [draw_plan(index, words) for index in range(COUNT)]


def hash_of(plans: list[Plan]) -> str:
    """What is the same as long as the requests are."""
    text = json.dumps([dataclasses.asdict(plan) for plan in plans], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class Words:
    """Tokens of texts."""

    def __init__(self, tokenizer: oga.Tokenizer, template: oga.ChatTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template
        self.common = [self.of(text)[0] for text in COMMON]
        self.forced = [token for text in FORCED for token in self.of(text)]

    def of(self, text: str) -> list[int]:
        tokens: list[int] = self.tokenizer.encode(text).tolist()
        return tokens

    def prompt(self, draw: Random, long: bool) -> list[int]:
        """The input of a first turn."""
        kind = draw.random()
        if long:
            text = " ".join(draw.choice(SENTENCES) for _ in range(draw.randint(14, 24)))
            return self.of(text)
        if kind < 0.4:
            message = {"role": "user", "content": draw.choice(QUESTIONS)}
            return [int(token) for token in self.template.encode([message])]
        if kind < 0.9:
            return self.of(draw.choice(BEGINNINGS + REPETITIONS))
        return [draw.randrange(20, 40000) for _ in range(draw.randint(1, 40))]


def draw_plan(index: int, words: Words) -> Plan:
    """Request ``index``."""
    draw = Random(index)
    shape = draw.choice(SHAPES)
    prompts = [words.prompt(draw, long=index % 25 == 7)]
    prompts += [words.of(draw.choice(CONTINUATIONS)) for _ in range({"single": 0, "continued": 1}.get(shape, 2))]
    turns = [draw_turn(draw, prompt, words) for prompt in prompts]
    if shape == "cancelled":
        turns[0] = cancelled(turns[0], draw.randint(1, 4))
        turns.pop()
    options = {}
    if draw.random() < 0.3:
        options["priority"] = draw.randint(-3, 3)
    if draw.random() < 0.2:
        options["cache_salt"] = draw.randint(1, 3)
    if draw.random() < 0.2 and shape == "single" and "min_generated_tokens" not in turns[0].settings:
        options["max_session_tokens"] = len(turns[0].prompt) + draw.randint(1, 6)
    return Plan(index, shape, options, tuple(turns))


def cancelled(turn: Turn, after: int) -> Turn:
    """The turn with room for more tokens than it gets before the host cancels it."""
    settings = {name: value for name, value in turn.settings.items() if name not in ("guidance", "delimited_guidance")}
    return dataclasses.replace(turn, settings=settings | {"max_generated_tokens": 12}, cancel_after=after)


def draw_turn(draw: Random, prompt: list[int], words: Words) -> Turn:
    """A turn over this input, with options of every kind."""
    settings: dict[str, Any] = {}
    guided = draw.random() < GUIDED
    length = draw.randint(7, 14) if guided else draw.randint(2, 8)
    settings["max_generated_tokens"] = length
    settings |= dict(mode_options(draw)) | dict(processor_options(draw))
    if draw.random() < 0.2:
        prompt = words.of(draw.choice(REPETITIONS))
        settings |= dict(dry_options(draw, prompt))
    likely = words.forced if guided else words.common + prompt[-12:]
    settings |= dict(ending_options(draw, length))
    settings |= dict(
        token_options(draw, words, likely, sorted(settings.keys() & {"min_generated_tokens", "ignore_eos"}))
    )
    settings |= dict(reading_options(draw, words, len(prompt)))
    if guided:
        settings.pop("ignore_eos", None)  # is refused beside guidance
        settings |= guidance_options(draw, settings)
    turn = Turn(tuple(prompt), settings, processed_logprobs=True, special_text=draw.random() < 0.3)
    return dataclasses.replace(turn, processed_logprobs=draw.random() < (0.85 if turn.greedy else 0.5))


def maybe(draw: Random, probability: float, name: str, value: Callable[[], Any]) -> Iterator[tuple[str, Any]]:
    """The option with this probability."""
    if draw.random() < probability:
        yield name, value()


def mode_options(draw: Random) -> Iterator[tuple[str, Any]]:
    """Greedy or sampled, and what shapes the distribution that a sampled turn draws from."""
    if draw.random() < 0.45:
        yield from maybe(draw, 0.2, "do_sample", lambda: False)
        yield from maybe(draw, 0.1, "seed", lambda: draw.randrange(2**64))
        return
    yield "do_sample", True
    yield "seed", draw.choice((0, draw.randrange(2**64), draw.randrange(1000)))
    if draw.random() < 0.08:
        yield "temperature", 0
        return
    yield from maybe(draw, 0.7, "temperature", lambda: draw.choice((0.3, 0.7, 1.0, 1.5, 2.5)))
    yield from maybe(draw, 0.5, "top_k", lambda: draw.choice((0, 2, 5, 40, 1000, 60000)))
    yield from maybe(draw, 0.25, "typical_p", lambda: draw.choice((0.2, 0.5, 0.9)))
    yield from maybe(draw, 0.4, "top_p", lambda: draw.choice((0.1, 0.5, 0.9, 0.99)))
    yield from maybe(draw, 0.3, "min_p", lambda: draw.choice((0.02, 0.1, 0.4)))
    yield from maybe(draw, 0.25, "top_n_sigma", lambda: draw.choice((0.5, 1.0, 2.5)))
    if draw.random() < 0.25:
        yield "xtc_probability", draw.choice((0.3, 0.7, 1.0))
        yield from maybe(draw, 0.7, "xtc_threshold", lambda: draw.choice((0.02, 0.05, 0.2)))


def processor_options(draw: Random) -> Iterator[tuple[str, Any]]:
    """What changes the logits of tokens that were there before."""
    yield from maybe(draw, 0.15, "repetition_penalty", lambda: draw.choice((0.8, 1.1, 1.4, 2.0)))
    yield from maybe(draw, 0.12, "presence_penalty", lambda: draw.choice((-1.0, 0.5, 3.0)))
    yield from maybe(draw, 0.12, "frequency_penalty", lambda: draw.choice((-0.5, 0.7, 2.0)))
    yield from maybe(draw, 0.15, "no_repeat_ngram_size", lambda: draw.choice((1, 2, 3, 4)))


def dry_options(draw: Random, prompt: list[int]) -> Iterator[tuple[str, Any]]:
    """DRY, over an input that repeats itself."""
    yield "dry_multiplier", draw.choice((0.2, 0.5, 1.0, 3.0))
    yield from maybe(draw, 0.6, "dry_base", lambda: draw.choice((1.0, 1.2, 2.5)))
    yield from maybe(draw, 0.5, "dry_allowed_length", lambda: draw.choice((1, 3, 4)))
    yield from maybe(draw, 0.5, "dry_range", lambda: draw.choice((5, 9, 64)))
    yield from maybe(draw, 0.3, "dry_breakers", lambda: draw.sample(prompt, 2))


def token_options(draw: Random, words: Words, likely: list[int], unending: list[str]) -> Iterator[tuple[str, Any]]:
    """What concerns single tokens; ``likely`` are those that the turn may well meet.

    A turn with options about its end, ``unending``, tends to end soon, so that they act.
    """
    biases = {}
    if draw.random() < 0.2:
        values = (-100.0, -4.0, -0.5, 2.0, 6.0)
        biases = {draw.choice(words.common): draw.choice(values) for _ in range(draw.randint(1, 5))}
    if draw.random() < (0.7 if unending else 0.1):
        biases[END] = draw.choice((10.0, 16.0, 30.0))
    if biases:
        yield "logit_bias", biases
    sequences = [[token] for token in likely] + [list(pair) for pair in pairwise(likely)]
    yield from maybe(draw, 0.15, "banned_sequences", lambda: draw.sample(sequences, draw.randint(1, 12)))
    yield from maybe(
        draw,
        0.1,
        "allowed_tokens",
        lambda: sorted({*likely, *draw.sample(range(20, 49152), draw.choice((5, 500))), draw.choice((END, 30))}),
    )
    yield from maybe(draw, 0.2, "stop_tokens", lambda: draw.sample(likely, draw.randint(1, 9)))


def ending_options(draw: Random, length: int) -> Iterator[tuple[str, Any]]:
    """What else says when the turn ends."""
    yield from maybe(draw, 0.15, "min_generated_tokens", lambda: draw.randint(1, length))
    yield from maybe(draw, 0.15, "ignore_eos", lambda: draw.random() < 0.8)
    strings = (" the", ".", "e", "o", "is a", "\n", ", ", " t", "é", "never appears")
    yield from maybe(draw, 0.15, "stop_strings", lambda: draw.sample(strings, draw.randint(1, 3)))


def reading_options(draw: Random, words: Words, length: int) -> Iterator[tuple[str, Any]]:
    """What the events carry besides tokens."""
    yield from maybe(draw, 0.5, "emit_text", lambda: draw.random() < 0.8)
    yield from maybe(draw, 0.75, "logprobs", lambda: draw.choice((0, 1, 2, 3, 5, 20)))
    yield from maybe(draw, 0.1, "logprob_tokens", lambda: draw.sample(words.common, draw.randint(1, 6)))
    if length < 100:
        yield from maybe(draw, 0.1, "prompt_logprobs", lambda: draw.choice((0, 1, 4)))


def guidance_options(draw: Random, settings: dict[str, Any]) -> dict[str, Any]:
    """A grammar for the whole turn, or one between two tokens, the first of which is made likely."""
    if draw.random() < 0.6:
        return {"guidance": draw.choice(GRAMMARS)}
    biases = settings.get("logit_bias", {}) | {DELIMITERS[0]: draw.choice((18.0, 26.0))}
    return {"delimited_guidance": (*DELIMITERS, DELIMITED), "logit_bias": biases}
