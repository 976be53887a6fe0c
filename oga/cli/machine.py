"""What this process may use of the machine: processors, instruction sets and memory, as the kernel's files say."""

from __future__ import annotations

import dataclasses
import math
import os
import resource
from collections.abc import Iterator
from pathlib import Path

# Of what a processor lists: the sets that matter to the kernels here and in ONNX Runtime.
TOLD_FLAGS = ("avx2", "fma", "f16c", "avx512f", "avx512bw", "avx512vl", "avx512dq", "avx512_vnni", "avx512_bf16",
              "avx_vnni", "amx_tile", "amx_int8", "amx_bf16", "asimd", "sve")  # fmt: skip
UNLIMITED = 1 << 60  # version 1 of control groups writes a number near 2**63 for no limit


@dataclasses.dataclass(frozen=True)
class Bound:
    """A limit and what sets it."""

    value: float
    source: str


class Machine:
    """Reads below ``root``, so that a test can give its own files."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root

    def instruction_sets(self) -> list[str]:
        """Those of the processor that matter to a language model."""
        for line in self._lines("proc/cpuinfo"):
            name, _, value = line.partition(":")
            if name.strip() in ("flags", "Features"):
                found = set(value.split())
                return [flag for flag in TOLD_FLAGS if flag in found]
        return []

    def processor_quota(self) -> Bound | None:
        """The tightest quota of the control groups, in processors."""
        quotas = []
        for folder in self._groups("cpu"):
            words = (_text(folder / "cpu.max") or "").split()
            if not words:
                words = [_text(folder / "cpu.cfs_quota_us") or "", _text(folder / "cpu.cfs_period_us") or ""]
            if len(words) == 2 and all(word.isdecimal() for word in words) and int(words[1]) > 0:
                quotas.append(Bound(int(words[0]) / int(words[1]), self._shown(folder)))
        return min(quotas, key=lambda bound: bound.value, default=None)

    def available_bytes(self) -> Bound | None:
        """What this process may still take: the least of the machine's, its groups' and its own limit."""
        bounds = list(self._group_memory())
        for line in self._lines("proc/meminfo"):
            words = line.split()
            if len(words) > 1 and words[0] == "MemAvailable:":
                bounds.append(Bound(int(words[1]) * 1024, "MemAvailable of /proc/meminfo"))
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            used = int((_text(self._root / "proc/self/statm") or "0").split()[0]) * resource.getpagesize()
            bounds.append(Bound(max(0, limit - used), "the address space limit (ulimit -v)"))
        return min(bounds, key=lambda bound: bound.value, default=None)

    def _group_memory(self) -> Iterator[Bound]:
        for folder in self._groups("memory"):
            for most, now, cached in (
                ("memory.max", "memory.current", "inactive_file"),
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
            ):
                limit, used = _text(folder / most) or "", _text(folder / now) or ""
                if limit.isdecimal() and used.isdecimal() and int(limit) < UNLIMITED:
                    statistics = dict(line.split() for line in (_text(folder / "memory.stat") or "").splitlines())
                    free = int(limit) - int(used) + int(statistics.get(cached, 0))
                    yield Bound(max(0, free), self._shown(folder / most))

    def _groups(self, controller: str) -> Iterator[Path]:
        """The folders of the control groups that bind this process, innermost first."""
        for line in self._lines("proc/self/mountinfo"):
            before, _, after = line.partition(" - ")
            kind, _, options = (*after.split(), "", "", "")[:3]
            if kind != "cgroup2" and not (kind == "cgroup" and controller in options.split(",")):
                continue
            mounted, point = before.split()[3:5]
            path = self._group_path("" if kind == "cgroup2" else controller)
            if path is None:
                continue
            inside = path.removeprefix(mounted) if mounted != "/" and path.startswith(mounted) else path
            base = self._root / point.lstrip("/")
            folder = base / inside.strip("/")
            while True:
                yield folder
                if folder == base:
                    break
                folder = folder.parent

    def _group_path(self, controller: str) -> str | None:
        for line in self._lines("proc/self/cgroup"):
            _, controllers, path = (*line.split(":", 2), "", "")[:3]
            if controllers == controller or (controller and controller in controllers.split(",")):
                return path
        return None

    def _lines(self, name: str) -> list[str]:
        return (_text(self._root / name) or "").splitlines()

    def _shown(self, path: Path) -> str:
        return f"/{path.relative_to(self._root)}"


def threads(machine: Machine) -> tuple[int, str]:
    """How many threads the engine takes when neither the environment nor the model says, and why so many."""
    processors = len(os.sched_getaffinity(0))
    quota = machine.processor_quota()
    if quota is not None and math.ceil(quota.value) < processors:
        return max(1, math.ceil(quota.value)), f"the quota of {quota.source} is {quota.value:g} processors"
    if processors < (os.cpu_count() or processors):
        return processors, f"this process may run on {processors} of {os.cpu_count()} processors"
    return processors, "one per processor"


def shown_bytes(count: float) -> str:
    """A size for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
