"""What is asked: lengths of prompts and outputs, when requests come, and the words they consist of."""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from oga.bench.choices import Arrivals
from oga.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oga.tokenizer import Tokenizer

# Short and common, so that nearly every vocabulary has a token for each of them, the space before it included.
COMMON = (
    "the of and to in is that it was for on are as with his they at be this from have or by one had not but what all "
    "were when we there can an your which their said if do will each about how up out them then she many some so these "
    "would other into has more her two like him see time could no make than first been its who now people my made over "
    "did down only way find use may water long little very after words called just where most know get through back "
    "much before go good new write our used me man too any day same right look think also around another came come "
    "work three word must because does part even place well such here take why things help put years different away "
    "again off went old number great tell men say small every found still between name should home big give air line"
)
WORDS = COMMON.split()
EXTRA_WORDS = 4  # a word is rarely less than a token


@dataclasses.dataclass(frozen=True)
class Lengths:
    """A distribution of numbers of tokens: ``128``, ``uniform:64:256`` or ``lognormal:128:0.5`` (median and sigma).

    Several with commas between them are a mix, in which each is as likely as the others.
    """

    kind: str
    low: float
    high: float
    others: tuple[Lengths, ...] = ()

    @classmethod
    def parse(cls, text: str, name: str) -> Lengths:
        """Raises :class:`oga.InvalidArgumentError` naming the option."""
        first, *others = (cls._parse_one(part, text, name) for part in text.split(","))
        return dataclasses.replace(first, others=tuple(others))

    @classmethod
    def _parse_one(cls, part: str, text: str, name: str) -> Lengths:
        kind, *numbers = part.split(":")
        try:
            if not numbers:
                return cls("fixed", low := _positive(kind), low)
            first, second = map(_positive, numbers)
        except ValueError:
            raise InvalidArgumentError(_wanted(text, name)) from None
        if kind not in ("uniform", "lognormal") or (kind == "uniform" and (first > second or first < 1)):
            raise InvalidArgumentError(_wanted(text, name))
        return cls(kind, first, second)

    def __str__(self) -> str:
        own = f"{self.low:g}" if self.kind == "fixed" else f"{self.kind}:{self.low:g}:{self.high:g}"
        return ",".join([own, *map(str, self.others)])

    def draw(self, dice: random.Random) -> int:
        """A number of tokens, at least 1."""
        if self.others:
            return dice.choice([dataclasses.replace(self, others=()), *self.others]).draw(dice)
        if self.kind == "uniform":
            return dice.randint(round(self.low), round(self.high))
        if self.kind == "lognormal":
            return max(1, round(dice.lognormvariate(math.log(self.low), self.high)))
        return max(1, round(self.low))


@dataclasses.dataclass(frozen=True)
class Load:
    """How requests come: ``concurrency`` at a time, or ``rate`` per second whatever has ended.

    They end after ``requests`` of them, or when ``seconds`` are over, whichever is first.
    """

    concurrency: int | None
    rate: float | None
    arrivals: Arrivals
    requests: int | None
    seconds: float | None
    warmup: int

    def moments(self, dice: random.Random) -> Iterator[float]:
        """Open loop: when each request comes, in seconds from the start, without end."""
        assert self.rate is not None
        now = 0.0
        while True:
            yield now
            now += dice.expovariate(self.rate) if self.arrivals is Arrivals.POISSON else 1.0 / self.rate


@dataclasses.dataclass(frozen=True)
class Question:
    """One request: a prompt as token ids or as text, and how many tokens its output has."""

    tokens: list[int] | None
    text: str | None
    output_tokens: int


class Questions:
    """Makes requests, each with words of its own after a beginning that all may share."""

    def __init__(
        self,
        prompt: Lengths,
        output: Lengths,
        shared_prefix_tokens: int,
        seed: int,
        tokenizer: Tokenizer | None,
        vocabulary: int | None,
    ) -> None:
        """With ``tokenizer`` prompts have exactly the tokens that are drawn, without it a word stands for one.

        ``vocabulary`` None asks for text, a number for token ids below it.
        """
        self._prompt = prompt
        self._output = output
        self._dice = random.Random(seed)
        self._tokenizer = tokenizer
        self._vocabulary = vocabulary
        self._shared_tokens = self._tokens(shared_prefix_tokens) if self._speaks_tokens else []
        self._shared_text = "" if self._speaks_tokens else self._words(shared_prefix_tokens)

    @property
    def _speaks_tokens(self) -> bool:
        return self._tokenizer is not None or self._vocabulary is not None

    def next(self) -> Question:
        """Another request; the same seed gives the same ones."""
        length, output_tokens = self._prompt.draw(self._dice), self._output.draw(self._dice)
        if not self._speaks_tokens:
            return Question(None, self._shared_text + self._words(length), output_tokens)
        tokens = [*self._shared_tokens, *self._tokens(length)]
        if self._vocabulary is not None:
            return Question(tokens, None, output_tokens)
        assert self._tokenizer is not None
        return Question(None, self._tokenizer.decode(tokens), output_tokens)

    def _tokens(self, count: int) -> list[int]:
        if self._tokenizer is None:
            assert self._vocabulary is not None
            return [self._dice.randrange(self._vocabulary) for _ in range(count)]
        found: list[int] = []
        while len(found) < count:
            words = self._words(count - len(found) + EXTRA_WORDS)
            found += self._tokenizer.encode(words, add_special_tokens=False).tolist()
        return found[:count]

    def _words(self, count: int) -> str:
        return "".join(f" {word}" for word in self._dice.choices(WORDS, k=count))


def spread(lengths: Sequence[int]) -> str:
    """The smallest, the mean and the largest of some numbers, for people."""
    if not lengths:
        return "none"
    mean = sum(lengths) / len(lengths)
    return f"{mean:.0f}" if min(lengths) == max(lengths) else f"{min(lengths)} to {max(lengths)}, {mean:.0f} on average"


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise ValueError(text)
    return value


def _wanted(text: str, name: str) -> str:
    return f"{name} {text}: write a number of tokens, uniform:LOW:HIGH or lognormal:MEDIAN:SIGMA."
