"""``oga doctor``: what is installed, what the machine offers, and what to do about each problem."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

import oga
from oga._native.loader import extensions_library, library_path, onnxruntime_library
from oga.cli.failures import FAILED, one_line
from oga.cli.info import facts_of
from oga.cli.models import open_engine
from oga.errors import OgaError

PACKAGES = {
    "tokenizers": ("cli", "encodes text with every kind of tokenizer"),
    "jinja2": ("cli", "renders chat templates"),
    "llguidance": ("grammar", "makes output obey JSON schemas, regular expressions and grammars"),
    "fastapi": ("server", "oga serve"),
    "uvicorn": ("server", "oga serve"),
    "onnx": ("export", "oga convert"),
    "safetensors": ("export", "oga convert"),
}
FEATURES = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512_bf16", "avx512_vnni", "amx_bf16", "amx_int8")
GIB = 2**30
LITTLE_MEMORY = 2 * GIB


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    name: str
    found: str
    problem: str | None = None
    """What is wrong and what to do about it."""
    is_needed: bool = False
    """Whether oga does not run at all with this problem."""


def doctor(model: str | None, overlay: str | None, json_output: bool) -> None:
    """Looks at everything; fails when something is missing that oga cannot do without."""
    findings = list(_findings(model, overlay))
    if json_output:
        print(json.dumps([dataclasses.asdict(finding) for finding in findings], ensure_ascii=False))
    else:
        for finding in findings:
            mark = "ok" if finding.problem is None else "MISSING" if finding.is_needed else "note"
            print(f"{mark:8}{finding.name:26}{finding.found}")
            if finding.problem is not None:
                print(f"{'':8}{finding.problem}")
    if any(finding.is_needed and finding.problem for finding in findings):
        raise typer.Exit(FAILED)


def _findings(model: str | None, overlay: str | None) -> Iterator[Finding]:
    yield Finding("python", f"{platform.python_version()}, {sys.executable}")
    yield Finding("oga", f"{oga.__version__}, {Path(oga.__file__).parent}")
    yield _checked("liboga", _library)
    yield _checked("onnxruntime", _runtime)
    yield _extensions()
    for package, (extra, purpose) in PACKAGES.items():
        yield _package(package, extra, purpose)
    yield _processor()
    yield _threads()
    yield _memory()
    if model is not None:
        yield from _model(model, overlay)


def _checked(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, look())
    except OgaError as error:
        return Finding(name, "-", one_line(error), is_needed=True)


def _library() -> str:
    return f"API {'.'.join(str(part) for part in oga.get_api_version())}, {library_path()}"


def _runtime() -> str:
    installed = [name for name in ("onnxruntime", "onnxruntime-gpu") if _version(name)]
    version = oga.get_ort_version()
    if onnxruntime_library() is None and not installed:
        return f"{version}, not from a Python package"
    return f"{version}, package {' and '.join(installed)}"


def _extensions() -> Finding:
    path = extensions_library()
    note = "Optional: C hosts need it for chat templates. pip install onnxruntime-extensions"
    return (
        Finding("onnxruntime-extensions", "-", note) if path is None else Finding("onnxruntime-extensions", str(path))
    )


def _package(package: str, extra: str, purpose: str) -> Finding:
    if importlib.util.find_spec(package) is None:
        return Finding(package, "-", f"Not installed; it {_verb(purpose)}. pip install 'oga[{extra}]'")
    return Finding(package, _version(package) or "installed")


def _verb(purpose: str) -> str:
    return f"is for {purpose}" if purpose.startswith("oga ") else purpose


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> Finding:
    text = _read("/proc/cpuinfo")
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    fields = {name.strip(): value.strip() for name, value in fields.items()}
    flags = set(fields.get("flags", "").split())
    found = f"{fields.get('model name', platform.machine())}: {' '.join(each for each in FEATURES if each in flags)}"
    forced = os.environ.get("OGA_CPU_ISA")
    if forced:
        return Finding("processor", found, f"OGA_CPU_ISA={forced} limits what is used; unset it for full speed.")
    if platform.machine() == "x86_64" and "avx2" not in flags:
        return Finding("processor", found, "Without AVX2 only the portable code runs, which is several times slower.")
    return Finding("processor", found)


def _threads() -> Finding:
    allowed = len(os.sched_getaffinity(0))
    quota = _cpu_quota()
    found = f"{allowed} of {os.cpu_count()} processors allowed"
    if quota is not None:
        found += f", cgroup grants {quota:.1f}"
    if quota is not None and quota < allowed:
        advice = "More threads than the cgroup grants slow one another down; raise its CPU limit."
        return Finding("threads", found, advice)
    return Finding("threads", found)


def _cpu_quota() -> float | None:
    limit, _, period = _read("/sys/fs/cgroup/cpu.max").strip().partition(" ")
    return int(limit) / int(period) if limit.isdecimal() and period.isdecimal() else None


def _memory() -> Finding:
    kilobytes = {
        name: int(rest.split()[0])
        for name, _, rest in (line.partition(":") for line in _read("/proc/meminfo").splitlines())
        if rest.split()
    }
    total, available = (kilobytes.get(name, 0) * 1024 for name in ("MemTotal", "MemAvailable"))
    limit = _read("/sys/fs/cgroup/memory.max").strip()
    found = f"{available / GIB:.1f} of {total / GIB:.1f} GiB available"
    if limit.isdecimal():
        used = _read("/sys/fs/cgroup/memory.current").strip()
        room = int(limit) - int(used if used.isdecimal() else 0)
        available = min(available, room)
        found += f", cgroup leaves {room / GIB:.1f} GiB"
    if available < LITTLE_MEMORY:
        return Finding(
            "memory", found, "Little room for a model and its cache; end other programs or use int8 or int4."
        )
    return Finding("memory", found)


def _model(model: str, overlay: str | None) -> Iterator[Finding]:
    try:
        with open_engine(model, overlay) as engine:
            facts = facts_of(engine)
    except (OgaError, OSError) as error:
        yield Finding("model", model, one_line(error), is_needed=True)
        return
    for name in ("model", "family", "device", "longest_request_tokens", "largest_batch_requests", "cache_bytes"):
        value = facts[name]
        yield Finding(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else value)


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError:
        return ""
