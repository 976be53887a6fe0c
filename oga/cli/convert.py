"""``oga convert``: model folders from other formats."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

from oga.cli.progress import stages


def convert(source: Path, destination: Path, options: dict[str, Any], json_output: bool) -> None:
    """Converts with the options of ``oga.export.convert``, and says what came of it and how to run it."""
    from oga import export

    with stages() as progress:
        report = export.convert(source, destination, progress=progress, **options)
    facts = {
        "folder": str(report.folder),
        "family": report.family,
        "precision": report.precision,
        "cache": report.cache,
        "parameters": report.parameters,
        "context_length": report.context_length,
        "bytes": report.bytes,
        "seconds": round(report.seconds, 3),
        "notes": list(report.notes),
    }
    if json_output:
        print(json.dumps(facts, ensure_ascii=False))
        return
    print(
        f"{report.folder}: {report.family}, {report.parameters / 1e6:.1f} million parameters, {report.precision}, "
        f"{report.cache} cache, {report.context_length} tokens of context, {report.bytes / 1e6:.0f} MB "
        f"in {report.seconds:.1f} s"
    )
    for note in report.notes:
        print(f"Note: {note}")
    print(f'Run it: oga run {shlex.quote(str(report.folder))} "Hello!"')
