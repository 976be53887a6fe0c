"""Steps of a packed batch over shuffled blocks, with the logits they must produce."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from paged_decoder import VOCAB, Array, Decoder, logits

BLOCK_SIZE = 4
NUM_BLOCKS = 24
COLUMNS = 6


@dataclass
class Step:
    """One execution.

    ``takes``: for each row its sequence and how many of its tokens are taken. ``sampled``: the rows whose last token's
    logits are wanted; None is all. ``moves``: (sequence, logical block) pairs copied to a fresh block first.
    """

    takes: list[tuple[int, int]]
    sampled: list[int] | None = None
    moves: list[tuple[int, int]] = field(default_factory=list)


# Ragged prefill, chunks mixed with decodes, rows in changing order, a copied block, a step that samples nothing.
STEPS = [
    Step([(0, 7), (1, 2)], sampled=[1]),
    Step([(0, 3)], sampled=[]),
    Step([(1, 1), (0, 1), (2, 9)]),
    Step([(2, 1), (1, 1), (0, 1)], moves=[(0, 0), (2, 1)]),
    Step([(0, 1), (1, 6), (2, 1)]),
    Step([(0, 1), (1, 1), (2, 1)]),
    Step([(0, 1), (1, 1), (2, 1)]),
]


def line(name: str, values: list[int]) -> str:
    """One line of a scenario file: a name, a count, the values."""
    return " ".join([name, str(len(values)), *map(str, values)])


def write(decoder: Decoder, folder: Path) -> None:
    """Writes steps.txt and expected.f32 (the sampled rows of all steps, [rows, VOCAB]) into ``folder``."""
    rng = np.random.default_rng(7)
    sequences = [[int(t) for t in rng.integers(0, VOCAB, 30)] for _ in range(3)]
    truth = [logits(decoder, tokens) for tokens in sequences]
    free = [int(b) for b in rng.permutation(NUM_BLOCKS)]
    tables: list[list[int]] = [[free.pop() for _ in range(COLUMNS)] for _ in sequences]
    done = [0] * len(sequences)
    text = [line("pool", [NUM_BLOCKS, BLOCK_SIZE, COLUMNS])]
    expected: list[Array] = []
    for step in STEPS:
        copies: list[int] = []
        for sequence, column in step.moves:
            copies += [tables[sequence][column], free.pop()]
            tables[sequence][column] = copies[-1]
        ids: list[int] = []
        cumulative, past, table, ends = [0], [], [], []
        for sequence, take in step.takes:
            ids += sequences[sequence][done[sequence] : done[sequence] + take]
            past.append(done[sequence])
            done[sequence] += take
            cumulative.append(len(ids))
            used = -(-done[sequence] // BLOCK_SIZE)
            table += tables[sequence][:used] + [-1] * (COLUMNS - used)
            ends.append(truth[sequence][done[sequence] - 1])
        rows = range(len(step.takes)) if step.sampled is None else step.sampled
        expected += [ends[row] for row in rows]
        indices = [cumulative[row + 1] - 1 for row in rows]
        named = {"ids": ids, "cumulative": cumulative, "past": past, "table": table, "indices": indices}
        text += [line(name, values) for name, values in named.items()] + [line("copies", copies)]
    (folder / "steps.txt").write_text("\n".join(text) + "\n", encoding="utf-8")
    (folder / "expected.f32").write_bytes(np.asarray(expected).astype("<f4").tobytes())
