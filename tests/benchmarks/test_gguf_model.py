"""The GGUF file that llama.cpp gets holds the model it was made from."""

from __future__ import annotations

from pathlib import Path

import gguf_model
import numpy as np
import pytest
from exported import arrays_of
from tiny_llama import write_tiny_llama

from oga import export


@pytest.mark.parametrize(
    "changes",
    [
        {"model_type": "llama", "tie_word_embeddings": False},
        {"model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_act": "silu"},
    ],
    ids=["llama", "qwen2"],
)
def test_converting_it_gives_the_same_model(tmp_path: Path, changes: dict[str, object]) -> None:
    source = write_tiny_llama(tmp_path / "source", **changes)
    gguf_model.write_f16(source, tmp_path / "model.gguf")
    export.convert(source, tmp_path / "direct")
    export.convert(tmp_path / "model.gguf", tmp_path / "through")
    direct, through = arrays_of(tmp_path / "direct"), arrays_of(tmp_path / "through")
    assert set(direct) == set(through)
    for name, values in direct.items():
        np.testing.assert_allclose(through[name], values, rtol=2**-10, atol=1e-7, err_msg=name)


def test_another_family_is_refused_by_name(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    config = source / "config.json"
    config.write_text(config.read_text(encoding="utf-8").replace('"llama"', '"mamba"'), encoding="utf-8")
    with pytest.raises(ValueError, match="is a mamba model; known: qwen2, llama"):
        gguf_model.write_f16(source, tmp_path / "model.gguf")
