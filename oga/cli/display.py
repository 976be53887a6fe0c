"""How answers are shown: in panels that grow, as plain text in the order of the prompts, or as JSON."""

from __future__ import annotations

import abc
import dataclasses
import json
import sys
from typing import TYPE_CHECKING, Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from oga.event import FinishReason

if TYPE_CHECKING:
    from oga.cli.logprobs import TokenTable
    from oga.statistics import EngineStatistics
    from oga.stream import Stream

REFRESHES_PER_SECOND = 12
PANEL_LINES = 3  # two of frame, one of text
# A model may print anything; on a terminal an escape sequence must not act.
VISIBLE_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"} | {127: 0x2421}


@dataclasses.dataclass(frozen=True)
class Totals:
    """What a whole run came to."""

    tokens: int
    seconds: float
    steps: int
    rows: int

    @classmethod
    def of(cls, statistics: EngineStatistics, seconds: float) -> Totals:
        """The totals of an engine that did nothing else."""
        return cls(statistics.generated_tokens, seconds, statistics.steps, statistics.rows)

    @property
    def tokens_per_second(self) -> float:
        """Generated tokens per second, the prompts' computation included in the time."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0

    @property
    def rows_per_step(self) -> float:
        """How many prompts one step served on average."""
        return self.rows / self.steps if self.steps else 0.0

    def __str__(self) -> str:
        return (
            f"{self.tokens} tokens in {self.seconds:.2f} s, {self.tokens_per_second:.1f} tokens/s, "
            f"{self.steps} steps, {self.rows_per_step:.2f} rows per step on average"
        )


class Display(abc.ABC):
    """Receives pieces of answers as they come. A context manager around the whole run."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @abc.abstractmethod
    def piece(self, index: int, text: str) -> None:
        """Adds to an answer."""

    @abc.abstractmethod
    def finished(self, index: int, stream: Stream[str]) -> None:
        """An answer is complete, or its turn failed."""

    @abc.abstractmethod
    def refresh(self) -> None:
        """A step is over."""

    @abc.abstractmethod
    def close(self) -> None:
        """Leaves the terminal in order, also when the run was interrupted."""

    @abc.abstractmethod
    def totals(self, totals: Totals) -> None:
        """Everything is over and the display is closed."""


class PlainDisplay(Display):
    """Prints answers in the order of the prompts, never mixed: the first unfinished one grows, later ones wait."""

    def __init__(self, prompts: list[str], table: TokenTable | None, *, quiet: bool) -> None:
        self._prompts = prompts
        self._table = table
        self._quiet = quiet
        self._waiting = ["" for _ in prompts]
        self._done = [False for _ in prompts]
        self._current = 0
        self._started = False
        self._controls: dict[int, int] = VISIBLE_CONTROLS if sys.stdout.isatty() else {}

    def piece(self, index: int, text: str) -> None:
        """Keeps it until its turn comes."""
        self._waiting[index] += text.translate(self._controls)

    def finished(self, index: int, stream: Stream[str]) -> None:
        """Lets the next answer be written."""
        self._done[index] = True
        if stream.error is not None:
            self._waiting[index] += f"[failed: {stream.error}]"
        if self._table is not None and not self._quiet:
            lines = self._table.lines(stream.logprobs)
            self._waiting[index] += "".join("\n" + line.translate(self._controls) for line in lines)

    def refresh(self) -> None:
        """Writes what may be written."""
        while self._current < len(self._prompts):
            self._write_current()
            if not self._done[self._current]:
                break
            print()
            self._current += 1
            self._started = False
        sys.stdout.flush()

    def close(self) -> None:
        """Ends the line of an answer that was interrupted."""
        if self._started:
            print(flush=True)

    def totals(self, totals: Totals) -> None:
        """Writes one line after the answers."""
        if not self._quiet:
            print(f"\n{totals}", flush=True)

    def _write_current(self) -> None:
        if not self._started:
            self._started = True
            if self._current > 0:
                print()
            if len(self._prompts) > 1 and not self._quiet:
                print(f"[{self._current + 1}] {' '.join(self._prompts[self._current].split())}")
        print(self._waiting[self._current], end="")
        self._waiting[self._current] = ""


class PanelDisplay(Display):
    """One panel per prompt, growing together on a terminal; at the end all answers are printed whole."""

    def __init__(self, prompts: list[str], table: TokenTable | None = None, console: Console | None = None) -> None:
        self._prompts = prompts
        self._table = table
        self._lines: list[list[str]] = [[] for _ in prompts]
        self._texts = ["" for _ in prompts]
        self._endings: list[str | None] = [None for _ in prompts]
        self._console = console or Console()
        self._live = Live(
            console=self._console,
            refresh_per_second=REFRESHES_PER_SECOND,
            transient=True,
            get_renderable=self._growing,
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def close(self) -> None:
        """Replaces the growing panels by whole ones."""
        self._live.stop()
        for index in range(len(self._prompts)):
            self._console.print(self._panel(index, Text(self._texts[index])))
            for line in self._lines[index]:
                self._console.print(Text(line.translate(VISIBLE_CONTROLS), style="dim"), soft_wrap=True)

    def refresh(self) -> None:
        """The panels refresh themselves."""

    def piece(self, index: int, text: str) -> None:
        """Grows a panel."""
        self._texts[index] += text.translate(VISIBLE_CONTROLS)

    def finished(self, index: int, stream: Stream[str]) -> None:
        """Writes below the panel how its answer ended."""
        self._endings[index] = f"failed: {stream.error}" if stream.error is not None else ending(stream)
        if self._table is not None:
            self._lines[index] = self._table.lines(stream.logprobs)

    def totals(self, totals: Totals) -> None:
        """Writes one line below the panels."""
        self._console.print(Text(str(totals)), soft_wrap=True)

    def _growing(self) -> RenderableType:
        """As many panels as the terminal has room for, unfinished ones first; each shows the end of its text."""
        height = self._console.size.height - 1
        room = max(1, height // PANEL_LINES)
        shown = sorted(sorted(range(len(self._prompts)), key=lambda index: self._endings[index] is not None)[:room])
        text_lines = max(1, height // len(shown) - (PANEL_LINES - 1))
        panels: list[RenderableType] = [self._panel(index, self._tail(index, text_lines)) for index in shown]
        return Group(*panels)

    def _tail(self, index: int, count: int) -> Text:
        lines = Text(self._texts[index]).wrap(self._console, max(1, self._console.size.width - 4))
        return Text("\n").join(lines[-count:])

    def _panel(self, index: int, text: Text) -> Panel:
        prompt = " ".join(self._prompts[index].split())
        title = Text(prompt, style="bold", no_wrap=True, overflow="ellipsis")
        title.truncate(max(1, self._console.size.width - 6), overflow="ellipsis")
        state = self._endings[index]
        return Panel(
            text, title=title, title_align="left", subtitle=None if state is None else Text(state, style="dim")
        )


def ending(stream: Stream[str]) -> str:
    """A few words on how an answer ended."""
    usage = stream.usage
    count = "" if usage is None else f"{usage.generated_tokens} tokens"
    return count if stream.finish_reason is FinishReason.EOS else f"{count}, {stream.finish_reason.name.lower()}"


class JsonDisplay(Display):
    """Collects everything and prints one JSON object."""

    def __init__(self, prompts: list[str], table: TokenTable | None) -> None:
        self._table = table
        self._answers: list[dict[str, Any]] = [{"prompt": prompt, "text": ""} for prompt in prompts]

    def refresh(self) -> None:
        """Programs wait for the end."""

    def close(self) -> None:
        """Nothing was written so far."""

    def piece(self, index: int, text: str) -> None:
        """Keeps it for the end."""
        self._answers[index]["text"] += text

    def finished(self, index: int, stream: Stream[str]) -> None:
        """Notes how the answer ended."""
        self._answers[index] |= {
            "finish_reason": stream.finish_reason.name.lower(),
            "error": None if stream.error is None else str(stream.error),
            "usage": None if stream.usage is None else stream.usage._asdict(),
            "token_ids": stream.token_ids,
            "stop_string_index": stream.matched_stop_string_index,
        }
        if self._table is not None:
            self._answers[index]["logprobs"] = self._table.entries(stream.logprobs)

    def totals(self, totals: Totals) -> None:
        """Prints everything."""
        summary = dataclasses.asdict(totals) | {
            "tokens_per_second": totals.tokens_per_second,
            "rows_per_step": totals.rows_per_step,
        }
        print(json.dumps({"answers": self._answers, "totals": summary}, ensure_ascii=False), flush=True)
