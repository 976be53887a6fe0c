"""The kernels' part of ``make bench``, on a product small enough for a test."""

from __future__ import annotations

import math
import os
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import kernel_bench
import kernel_graphs
import kernel_plot
import pytest

from oga._native.loader import onnxruntime_library


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    """What is measured of one shape; the times are this machine's and prove nothing."""
    program = Path(os.environ["OGA_TEST_PROGRAMS"], "benchmarks", "kernel_speed")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_bench, "SHAPES", {"small": (512, 8192)})
        patch.setattr(kernel_bench, "BITS", (4,))
        patch.setattr(kernel_bench, "ONEDNN_ROWS", (64,))
        patch.setattr(kernel_graphs, "THIN_BYTES", 8 << 20)
        return kernel_bench.measure(program, onnxruntime_library())


def test_every_line_has_speeds_and_shares_of_limits(results: dict[str, Any]) -> None:
    lines = results["lines"]
    products = [line for line in lines if line["part"] == "product"]
    names = [line["name"].split(", ")[1] for line in products]
    assert names == ["1 row", "4 rows", "8 rows", "16 rows", "64 rows", "256 rows"]
    assert {line["name"].split(",")[0] for line in lines if line["part"] == "attention"} == {
        *("decode", "prefill of 1024", "prefill of 256 after 3840")
    }
    for line in lines:
        assert all(line[key] > 0 for key in ("gb_s", "gflop_s", "read_share", "peak_share")), line
    assert all(line["to_runtime"] > 0 for line in products)
    assert [line["to_onednn"] is not None for line in products] == [False, False, False, False, True, False]


def test_limits_are_plausible(results: dict[str, Any]) -> None:
    limits = results["limits"]
    for key in kernel_bench.LIMITS:
        assert all(math.isfinite(limits[f"{key}_{which}"]) and limits[f"{key}_{which}"] > 0 for which in ("1", "all"))
    assert limits["isa"] in results["variants"][0]["by_isa"]


def test_each_instruction_set_of_the_machine_has_a_column(results: dict[str, Any]) -> None:
    first, *others = (list(each["by_isa"]) for each in results["variants"])
    assert first[0] == "portable"
    assert all(isas == first for isas in others)


def test_the_table_shows_ratios_to_a_baseline(results: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    line = results["lines"][0]
    slower = dict(line, gflop_s=line["gflop_s"] / 2)
    kernel_bench.show(results, {"lines": [slower]})
    printed = capsys.readouterr().out.splitlines()
    [shown] = [each for each in printed if each.startswith(line["name"])]
    assert shown.split()[-1] == "2.00"
    assert sum("/before" in each for each in printed) == 2


def test_the_picture_has_a_bar_for_each_line(results: dict[str, Any], tmp_path: Path) -> None:
    kernel_plot.write(results["lines"], tmp_path / "bench.svg")
    drawn = ElementTree.parse(tmp_path / "bench.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    titled = [bar for bar in drawn.iter(f"{space}rect") if bar.find(f"{space}title") is not None]
    assert len(titled) == len(results["lines"])
    words = {text.text for text in drawn.iter(f"{space}text")}
    assert words >= {line["name"] for line in results["lines"]}
