"""Builds the models of the C++ tests: build_models.py FOLDER.

FOLDER/<decoder>/ holds model.onnx, genai_config.json, steps.txt and expected.f32; FOLDER/operators/ holds one-node
graphs, FOLDER/matmul/ and FOLDER/matmul_nbits/ such with their inputs and outputs. Everything is small, random and the
same on every machine.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import matmul_cases
import matmul_nbits_cases
import numpy as np
import onnx
import operator_cases
import scenario
from onnx import TensorProto
from paged_decoder import CONTEXT, HIDDEN, VOCAB, Decoder, Graph, build

# Each decoder takes another way through the manifest, the executor and the operator.
DECODERS = {
    "separate": Decoder(),
    "packed_float16": Decoder(
        packed=True,
        cache_type=TensorProto.FLOAT16,
        rotary_dim=4,
        interleaved=True,
        index_type=TensorProto.INT64,
        position_components=1,
        seed=2,
    ),
    "per_token": Decoder(rotary_dim=0, window=5, logits="token", position_components=3, seed=3),
    "per_row": Decoder(
        heads=6, kv_heads=1, head_size=16, scale=0.1, logits="row", metadata=False, rotary_dim=16, seed=4
    ),
    "int8_cache": Decoder(cache_type=TensorProto.INT8, softcap=4.0, sinks=True, norm=True, seed=5),
    "bfloat16_cache": Decoder(cache_type=TensorProto.BFLOAT16, norm=True, metadata=False, seed=6),
}


def config(decoder: Decoder) -> dict[str, Any]:
    """Returns the genai_config.json of ``decoder``."""
    inputs = {
        name: name for name in ("input_ids", "cumulative_sequence_lengths", "past_sequence_lengths", "block_table")
    }
    inputs |= {f"past_{side}_names": f"past_key_values.%d.{side}" for side in ("key", "value")}
    if decoder.metadata:
        inputs["attention_metadata"] = "attention_metadata"
    if decoder.position_components:
        inputs["position_ids"] = "position_ids"
    if decoder.logits == "index":
        inputs["logits_indices"] = "logits_indices"
    outputs = {"logits": "logits"} | {f"present_{side}_names": f"present.%d.{side}" for side in ("key", "value")}
    return {
        "model": {
            "type": "llama",
            "vocab_size": VOCAB,
            "context_length": CONTEXT,
            "eos_token_id": [2],
            "decoder": {
                "filename": "model.onnx",
                "num_hidden_layers": decoder.layers,
                "num_attention_heads": decoder.heads,
                "num_key_value_heads": decoder.kv_heads,
                "head_size": decoder.head_size,
                "hidden_size": HIDDEN,
                "inputs": inputs,
                "outputs": outputs,
            },
        },
        "search": {"max_length": CONTEXT, "do_sample": False},
        "engine": {
            "dynamic_batching": {
                "block_size": scenario.BLOCK_SIZE,
                "num_blocks": scenario.NUM_BLOCKS,
                "max_batch_size": 4,
                "max_scheduled_tokens": 32,
            }
        },
    }


def plain_export() -> onnx.ModelProto:
    """Returns a graph with the inputs and outputs of an ordinary GroupQueryAttention export."""
    graph = Graph()
    graph.input("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"])
    graph.input("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"])
    graph.constant("embed", np.zeros((VOCAB, VOCAB)), np.float32)
    graph.add("Gather", ["embed", "input_ids"], "logits")
    graph.output("logits", TensorProto.FLOAT, ["batch_size", "sequence_length", VOCAB])
    for i in range(2):
        for side in ("key", "value"):
            shape: list[int | str] = ["batch_size", 2, "past_sequence_length", 8]
            graph.input(f"past_key_values.{i}.{side}", TensorProto.FLOAT, shape)
            graph.add("Identity", [f"past_key_values.{i}.{side}"], f"present.{i}.{side}")
            graph.output(f"present.{i}.{side}", TensorProto.FLOAT, shape)
    return graph.model()


def write_model(folder: Path, decoder: Decoder, model: onnx.ModelProto, *, external: bool = False) -> None:
    """Writes a model folder; with ``external`` the weights go to model.onnx.data."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "genai_config.json").write_text(json.dumps(config(decoder), indent=2), encoding="utf-8")
    data = folder / "model.onnx.data"
    data.unlink(missing_ok=True)  # onnx appends to a file that is there
    onnx.save_model(model, folder / "model.onnx", save_as_external_data=external, location=data.name, size_threshold=0)


def main(target: Path) -> None:
    """Builds everything under ``target``."""
    for name, decoder in DECODERS.items():
        write_model(target / name, decoder, build(decoder))
        scenario.write(decoder, target / name)
    write_model(target / "external", DECODERS["separate"], build(DECODERS["separate"]), external=True)
    scenario.write(DECODERS["separate"], target / "external")
    write_model(target / "plain", DECODERS["separate"], plain_export())
    for extra in ("block_table_windowed", "mystery"):
        decoder = Decoder(extra_inputs={extra: (TensorProto.INT32, ["batch_size", "ring_blocks"])})
        write_model(target / extra, decoder, build(decoder))
    operators = target / "operators"
    operators.mkdir(parents=True, exist_ok=True)
    for name, model in operator_cases.cases().items():
        onnx.save_model(model, operators / f"{name}.onnx")
    onnx.save_model(operator_cases.add_one(), operators / "add_one.onnx")
    matmul_nbits_cases.write(target / "matmul_nbits")
    matmul_cases.write(target / "matmul")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
