"""What the built liboga.so shows to the outside: the ledger's symbols, few needs, no trace of where it was built."""

from __future__ import annotations

import subprocess

from installation import ROOT, Installed

SYSTEM_LIBRARIES = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "ld-linux-x86-64.so.2"}


def output(*command: object) -> list[str]:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=True
    ).stdout.splitlines()


def test_the_exported_symbols_equal_the_ledger(installed: Installed) -> None:
    symbols = output("nm", "-D", "--defined-only", installed.package / "_native" / "lib" / "liboga.so")
    exported = {line.split()[2].split("@")[0] for line in symbols if line.split()[1] != "A"}
    ledger = {line.split()[0] for line in (ROOT / "include" / "oga" / "symbols.txt").read_text().splitlines()}
    assert exported == ledger, "an exported function must be declared in a header and listed in symbols.txt"


def test_the_library_needs_nothing_but_the_system(installed: Installed) -> None:
    dynamic = output("readelf", "-d", installed.package / "_native" / "lib" / "liboga.so")
    needed = {line.split("[")[1].rstrip("]") for line in dynamic if "(NEEDED)" in line}
    assert needed <= SYSTEM_LIBRARIES
    assert [line for line in dynamic if "RPATH" in line or "RUNPATH" in line] == []
    assert [line for line in dynamic if "(SONAME)" in line and "[liboga.so]" in line]


def test_the_library_does_not_name_the_folder_it_was_built_in(installed: Installed) -> None:
    content = (installed.package / "_native" / "lib" / "liboga.so").read_bytes()
    assert str(ROOT).encode() not in content
