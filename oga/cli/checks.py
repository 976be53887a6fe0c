"""What `oga doctor` looks at before any model: the installation and the machine."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator

import oga
from oga._native.loader import extensions_library, library_path
from oga.cli.failures import one_line
from oga.cli.machine import Machine, shown_bytes, threads
from oga.errors import OgaError

OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"
INSTALLATION, MACHINE = "Installation", "Machine"
OLDEST_PYTHON = (3, 11)
LITTLE_BYTES = 1 << 30

# Module, distribution, what needs it, and the extra that brings it.
OPTIONAL = (
    ("tokenizers", "tokenizers", "text and oga's commands", "cli"),
    ("jinja2", "jinja2", "chat templates", "cli"),
    ("fastapi", "fastapi", "oga serve", "server"),
    ("uvicorn", "uvicorn", "oga serve", "server"),
    ("pydantic", "pydantic", "oga serve", "server"),
    ("onnx", "onnx", "oga convert and pull", "export"),
    ("onnx_ir", "onnx-ir", "oga convert and pull", "export"),
    ("gguf", "gguf", "oga convert and pull", "export"),
    ("safetensors", "safetensors", "oga convert and pull", "export"),
    ("ml_dtypes", "ml-dtypes", "oga convert and pull", "export"),
)
RUNTIMES = ("onnxruntime", "onnxruntime-gpu")
VARIABLES = ("OGA_LIBRARY", "OGA_ORT_LIBRARY", "OGA_ORTX_LIBRARY", "OGA_LLGUIDANCE_LIBRARY", "OGA_CPU_ISA",
             "OGA_CPU_MATMUL", "OGA_MEMORY_LIMIT", "OGA_NUM_THREADS", "OGA_VALIDATE", "OGA_CACHE")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``advice`` says what to do about a note or a problem."""

    section: str
    name: str
    value: str
    level: str = OK
    advice: str | None = None

    @property
    def facts(self) -> dict[str, str | None]:
        """For programs; the level is ``ok``, ``note`` or ``problem``."""
        return dataclasses.asdict(self) | {"level": self.level.lower()}


def check_installation() -> Iterator[Finding]:
    """The interpreter, the libraries and the packages."""
    python = ".".join(map(str, sys.version_info[:3]))
    old = sys.version_info < OLDEST_PYTHON
    yield Finding(
        INSTALLATION,
        "python",
        f"{python} ({sys.executable})",
        PROBLEM if old else OK,
        "oga needs Python 3.11 or newer." if old else None,
    )
    yield Finding(INSTALLATION, "oga", oga.__version__)
    library = _asked("liboga", lambda: f"API {'.'.join(map(str, oga.get_api_version()))} ({library_path()})", PROBLEM)
    yield library
    if library.level == OK:
        yield _asked("onnxruntime", oga.get_ort_version, PROBLEM, "pip install 'oga[cpu]'")
        yield _asked("llguidance", oga.get_llguidance_version, NOTE, "pip install 'oga[grammar]'")
    runtimes = [name for name in RUNTIMES if _version(name) is not None]
    if len(runtimes) > 1:
        yield Finding(
            INSTALLATION,
            "two runtimes",
            " and ".join(runtimes),
            NOTE,
            f"They overwrite each other's files: pip uninstall {' '.join(runtimes)}, then install one of them.",
        )
    yield _extensions()
    for module, distribution, purpose, extra in OPTIONAL:
        yield _optional(module, distribution, purpose, extra)
    for name in VARIABLES:
        if (value := os.environ.get(name)) is not None:
            yield _variable(name, value)


def check_machine(machine: Machine | None = None) -> Iterator[Finding]:
    """Processors, instruction sets and memory."""
    machine = machine or Machine()
    sets = machine.instruction_sets()
    yield Finding(MACHINE, "processor has", " ".join(sets) or "nothing that matters here")
    kernels = _asked("kernels use", oga.get_cpu_isa, PROBLEM, "unset OGA_CPU_ISA", section=MACHINE)
    if kernels.level == OK and kernels.value == "portable":
        kernels = dataclasses.replace(
            kernels, level=NOTE, advice="They are slow: use a processor with AVX2, or unset OGA_CPU_ISA if it is set."
        )
    if library_path().is_file():
        yield kernels
    yield Finding(
        MACHINE, "processors", f"{os.cpu_count()} here, {len(os.sched_getaffinity(0))} of them for this process"
    )
    yield _threads(machine)
    yield _memory(machine)


def _asked(
    name: str, ask: Callable[[], str], level: str, advice: str | None = None, section: str = INSTALLATION
) -> Finding:
    """What ``ask`` answers, or its failure with what to do: the error's own words unless something shorter is known."""
    try:
        return Finding(section, name, ask())
    except OgaError as error:
        return Finding(section, name, one_line(error), level, advice or "pip install --force-reinstall oga")


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _extensions() -> Finding:
    path = extensions_library()
    if path is None:
        return Finding(INSTALLATION, "onnxruntime-extensions", "not installed; only hosts without Python need it")
    return Finding(INSTALLATION, "onnxruntime-extensions", f"{_version('onnxruntime-extensions')} ({path})")


def _optional(module: str, distribution: str, purpose: str, extra: str) -> Finding:
    if importlib.util.find_spec(module) is None:
        return Finding(INSTALLATION, distribution, f"not installed; {purpose}", NOTE, f"pip install 'oga[{extra}]'")
    return Finding(INSTALLATION, distribution, _version(distribution) or "installed")


def _variable(name: str, value: str) -> Finding:
    if name == "OGA_VALIDATE" and value == "1":
        advice = "Every step checks all invariants, which is slow: unset it, unless you look for a bug."
        return Finding(INSTALLATION, name, value, NOTE, advice)
    return Finding(INSTALLATION, name, value or "(empty)")


def _threads(machine: Machine) -> Finding:
    count, reason = threads(machine)
    set_to = os.environ.get("OGA_NUM_THREADS")
    if not set_to:
        return Finding(MACHINE, "threads of a step", f"{count}, unless the model says otherwise: {reason}")
    if not set_to.isdecimal() or not 1 <= int(set_to) <= 1024:
        advice = "Set OGA_NUM_THREADS to a number from 1 to 1024, or unset it."
        return Finding(MACHINE, "threads of a step", f"OGA_NUM_THREADS is {set_to!r}", PROBLEM, advice)
    too_many = int(set_to) > count
    advice = f"Threads that share a processor wait for one another: at most {count} help here ({reason})."
    value = f"{set_to}, as OGA_NUM_THREADS says"
    return Finding(MACHINE, "threads of a step", value, NOTE if too_many else OK, advice if too_many else None)


def _memory(machine: Machine) -> Finding:
    available = machine.available_bytes()
    if available is None:
        return Finding(MACHINE, "memory", "the system does not say", NOTE, "Set engine.dynamic_batching.num_blocks.")
    value = f"{shown_bytes(available.value)} available, by {available.source}"
    if available.value >= LITTLE_BYTES:
        return Finding(MACHINE, "memory", value)
    return Finding(MACHINE, "memory", value, NOTE, "That is little: end other programs, or raise the limit.")
