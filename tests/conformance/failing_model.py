"""A copy of a model that loads like any other and fails to run as soon as it meets one of its higher token ids."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

LAST_GOOD_ID = 399


def write_failing_model(source: Path, folder: Path, last_good_id: int = LAST_GOOD_ID) -> Path:
    """Adds zero to every embedding, from a table that is shorter than the vocabulary: a lookup beyond its end fails."""
    shutil.copytree(source, folder)
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    lookup = next(node for node in model.graph.node if node.op_type == "Gather" and "input_ids" in node.input)
    embedded, width = lookup.output[0], 64
    table = np.zeros((last_good_id + 1, width), np.float32)
    model.graph.initializer.append(numpy_helper.from_array(table, "short_table"))
    lookup.output[0] = "embedded_before"
    at = list(model.graph.node).index(lookup) + 1
    model.graph.node.insert(at, helper.make_node("Gather", ["short_table", "input_ids"], ["zeros"], "short_lookup"))
    model.graph.node.insert(at + 1, helper.make_node("Add", ["embedded_before", "zeros"], [embedded], "add_zeros"))
    onnx.save(model, str(folder / "model.onnx"))
    return folder
