"""Puts the benchmarks of tools/ and the tiny models of tests/ on the path."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools" / "bench"), str(ROOT / "tests" / "models")]
