"""``oga pull``: models fetched once and kept."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from oga.cli.progress import stages
from oga.export.precision import DEFAULT_PRECISION, Precision


def pull(name: str, precision: Precision, cache_dir: Path | None, force: bool, json_output: bool) -> None:
    """Fetches, converts and says how to run the result."""
    from oga import export

    with stages() as progress:
        folder = export.pull(name, cache_dir=cache_dir, precision=precision, progress=progress, force=force)
    if json_output:
        print(json.dumps({"name": name, "folder": str(folder), "precision": precision}, ensure_ascii=False))
        return
    by_name = cache_dir is None and precision == DEFAULT_PRECISION
    print(f'{name} is in {folder}. Run it: oga run {name if by_name else shlex.quote(str(folder))} "Hello!"')
