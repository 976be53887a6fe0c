"""What `oga doctor MODEL` looks at: the folder's files, what loading it says, and one answer."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

from oga.cli.checks import NOTE, OK, PROBLEM, Finding
from oga.cli.failures import one_line
from oga.cli.info import facts_of
from oga.cli.machine import Machine, shown_bytes
from oga.config import Config
from oga.engine import Engine
from oga.errors import OgaError
from oga.model import Model

MODEL = "Model"
# What a folder should have, what for, and what to do when it is not there.
FILES = (
    ("genai_config.json", PROBLEM, "Convert the model: oga convert SRC DST"),
    ("tokenizer.json", NOTE, "Only token ids can be used. Copy the file from the model that this one was made from."),
    ("tokenizer_config.json", NOTE, "Special tokens and the chat template may be unknown. Copy it from the source."),
)
CONVERSATION = [{"role": "user", "content": "Hello!"}]


def check_model(name: str, overlay: str | None, is_usable: bool) -> Iterator[Finding]:
    """The findings on a model; it is loaded only when the installation can do that."""
    folder = _folder(name)
    if folder is None:
        yield Finding(MODEL, "folder", f"{name} does not exist", PROBLEM, "Convert one, or fetch one: oga pull smollm2")
        return
    yield Finding(MODEL, "folder", f"{folder}, {shown_bytes(_bytes(folder))}")
    missing = [(file, level, advice) for file, level, advice in FILES if not (folder / file).is_file()]
    for file, level, advice in missing:
        yield Finding(MODEL, file, "missing", level, advice)
    if any(level == PROBLEM for _, level, _ in missing):
        return
    if not is_usable:
        yield Finding(MODEL, "loading", "not tried", NOTE, "Solve the problems above first.")
        return
    yield from _load(folder, overlay)


def _folder(name: str) -> Path | None:
    """As the other commands find it, but nothing is fetched."""
    if Path(name).is_dir():
        return Path(name)
    from oga import export

    return export.pulled_folder(name) if name in export.pullable_names() else None


def _load(folder: Path, overlay: str | None) -> Iterator[Finding]:
    try:
        with Config(folder) as config:
            if overlay is not None:
                config.overlay(overlay)
            with Model(config) as model, Engine(model) as engine:
                for name, value in itertools.islice(facts_of(engine).items(), 1, 6):
                    yield Finding(MODEL, name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
                yield _cache(engine)
                yield _text(model)
                yield _answer(engine)
    except OgaError as error:
        advice = "The line above names the file and the key. Convert the model again if you did not write it yourself."
        if isinstance(error, MemoryError):
            advice = "Give less to the cache (engine.dynamic_batching.num_blocks), or more memory to this process."
        yield Finding(MODEL, "loading", one_line(error), PROBLEM, advice)


def _cache(engine: Engine) -> Finding:
    counts, limits = engine.get_statistics(), engine.get_capabilities()
    total = counts.total_blocks * counts.block_bytes
    slots = counts.total_blocks * counts.block_size
    value = (
        f"{shown_bytes(total)} when it is full: {slots:,} tokens, {slots / limits.max_request_length:.1f} full requests"
    )
    available = Machine().available_bytes()
    if slots < limits.max_request_length:
        advice = (
            "The longest request does not fit: raise engine.dynamic_batching.num_blocks, or lower search.max_length."
        )
        return Finding(MODEL, "cache", value, NOTE, advice)
    if available is not None and total > available.value:
        advice = f"Only {shown_bytes(available.value)} are available: lower engine.dynamic_batching.num_blocks."
        return Finding(MODEL, "cache", value, NOTE, advice)
    return Finding(MODEL, "cache", value)


def _text(model: Model) -> Finding:
    try:
        count = len(model.chat_template.encode(CONVERSATION))
    except OgaError as error:
        return Finding(MODEL, "chat template", one_line(error), NOTE, "oga run --raw works without one.")
    return Finding(MODEL, "chat template", f"a short question becomes {count} tokens")


def _answer(engine: Engine) -> Finding:
    tokens = list(engine.stream([0], max_new_tokens=1, ignore_eos=True))
    return Finding(MODEL, "one step", f"gives token {tokens[0]}", OK)


def _bytes(folder: Path) -> int:
    """The size of what a folder holds."""
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file())
