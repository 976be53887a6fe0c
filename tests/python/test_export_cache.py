"""The element type of a converted model's caches: what is declared, what it does to logits, and that all runs on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from driving import finish
from gguf import GGMLQuantizationType as Kind
from paged_oracle import PagedRunner
from safetensors.numpy import load_file, save_file
from tiny_gguf import write_tiny_gguf
from tiny_llama import write_tiny_llama
from tiny_models import LIMITS

import oga
from oga.export import ConversionError, convert
from oga.export.precision import CACHES, PRECISIONS

TYPES = {"fp32": onnx.TensorProto.FLOAT, "bf16": onnx.TensorProto.BFLOAT16, "fp16": onnx.TensorProto.FLOAT16}
# How far a logit of the tiny models may move: bfloat16 keeps 8 bits of a number, float16 keeps 11.
MOST = {"bf16": 0.03, "fp16": 0.004}
WINDOWED = {"model_type": "mistral", "sliding_window": 8}
QWEN3 = {"model_type": "qwen3", "tie_word_embeddings": False, "head_dim": 32}
PROMPT = [7 * i % 500 for i in range(26)]
Floats = npt.NDArray[np.float64]


def declared(folder: Path) -> set[int]:
    """The element types of the caches that the graph takes and returns."""
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    caches = [
        value for value in [*graph.input, *graph.output] if value.name.startswith(("past_key_values.", "present."))
    ]
    assert len(caches) == 2 * 2 * 2  # in and out, two layers, keys and values
    return {value.type.tensor_type.elem_type for value in caches}


@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision_takes_every_cache_and_runs(precision: Any, cache: Any, tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", tokenizer=False)
    report = convert(source, tmp_path / "model", precision=precision, cache=cache)
    wanted = {"auto": "fp32" if precision == "fp32" else "bf16"}.get(cache, cache)
    assert report.cache == wanted
    assert declared(report.folder) == {TYPES[wanted]}
    onnx.checker.check_model(report.folder / "model.onnx")
    with load(report.folder) as model, oga.Engine(model) as engine:
        counts = engine.get_statistics()
        # 2 layers, keys and values, 2 heads of 16 numbers, 4 tokens.
        assert counts.block_bytes == 2 * 2 * 2 * 16 * 4 * (4 if wanted == "fp32" else 2)
        assert len(list(engine.stream(PROMPT, max_new_tokens=6, ignore_eos=True))) == 6


def test_a_cache_changes_nothing_else(tmp_path: Path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf", kinds={"": Kind.Q4_0, "token_embd": Kind.Q8_0})
    folders = [convert(source, tmp_path / cache, precision="int4", cache=cache).folder for cache in ("fp32", "fp16")]
    files = [{path.name: path.read_bytes() for path in folder.iterdir()} for folder in folders]
    assert files[0].pop("model.onnx") != files[1].pop("model.onnx")
    assert files[0] == files[1]
    nodes = [onnx.load(folder / "model.onnx", load_external_data=False).graph.node for folder in folders]
    assert list(nodes[0]) == list(nodes[1])
    assert [declared(folder) for folder in folders] == [{TYPES["fp32"]}, {TYPES["fp16"]}]


@pytest.mark.parametrize("cache", ["int8", "float16", ""])
def test_a_cache_that_no_conversion_makes_is_refused_with_those_there_are(cache: Any, tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", tokenizer=False)
    with pytest.raises(ConversionError, match=rf'^cache "{cache}" is unknown; known: auto, fp32, bf16, fp16$'):
        convert(source, tmp_path / "model", precision="int8", cache=cache)
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("cache", MOST)
@pytest.mark.parametrize("changes", [{}, WINDOWED, QWEN3], ids=["llama", "mistral with a window", "qwen3"])
def test_logits_of_a_narrow_cache_stay_close_to_those_of_a_whole_one(
    changes: dict[str, Any], cache: Any, tmp_path: Path
) -> None:
    source = write_tiny_llama(tmp_path / "source", tokenizer=False, **changes)
    whole, narrow = (convert(source, tmp_path / each, cache=each).folder for each in ("fp32", cache))
    wanted, rounded = (scores(PagedRunner(folder)) for folder in (whole, narrow))
    largest = np.abs(rounded - wanted).max()
    assert 0 < largest < MOST[cache]
    # The engine's own operator rounds as the definition does; a number between two neighbours may go the other way.
    # Over a cache in bfloat16 it may multiply in bfloat16, and then rounds queries and the weights of the softmax too.
    found = engine_scores(narrow)
    assert np.abs(found - rounded).max() < (MOST[cache] if cache == "bf16" else largest / 2)
    assert np.abs(engine_scores(whole) - wanted).max() < 1e-3


@pytest.mark.parametrize("cache", MOST)
def test_blocks_of_a_narrow_cache_are_shared_and_copied_whole(cache: Any, tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", tokenizer=False)
    folder = convert(source, tmp_path / "model", cache=cache).folder
    with load(folder) as model, oga.Engine(model) as engine:
        streams = [engine.stream(PROMPT, max_new_tokens=8, ignore_eos=True, logprobs=2) for _ in range(2)]
        assert list(streams[0]) == list(streams[1])
        assert streams[0].logprobs == streams[1].logprobs
        assert engine.get_statistics().prefix_tokens_saved == 24
    with load(folder, prefix_caching=False) as model, oga.Engine(model) as engine:
        origin = engine.create_request()
        begun = {(origin, origin.begin_turn(PROMPT[:9], drawn(origin))): PROMPT[:9]}
        answered = PROMPT[:9] + finish(engine)[next(iter(begun))].tokens
        twin = origin.fork()
        for request, more in ((origin, [8, 9]), (twin, [10])):
            turn = request.begin_turn(more, drawn(request))
            begun[request, turn] = [*answered, *more]
        continued = {key: turn.tokens for key, turn in finish(engine).items()}
        for key, tokens in continued.items():
            request = engine.create_request()
            alone = request.begin_turn(begun[key], drawn(request))
            assert finish(engine)[request, alone].tokens == tokens
        assert len({tuple(tokens) for tokens in continued.values()}) == 2


def test_a_list_of_prompts_runs_on_a_narrow_cache(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", tokenizer=False)
    folder = convert(source, tmp_path / "model", precision="int8", cache="fp16").folder
    prompts = [PROMPT[:length] for length in (3, 9, 20)]
    with load(folder) as model, oga.Engine(model) as engine:
        wanted = [list(engine.stream(prompt, max_new_tokens=5, ignore_eos=True)) for prompt in prompts]
    with oga.LLM(folder) as llm:
        results = llm.generate(prompts, max_new_tokens=5, ignore_eos=True)
    assert [result.token_ids for result in results] == wanted


def test_values_beyond_float16_fail_their_request_and_fit_into_bfloat16(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", tokenizer=False)
    weights = load_file(source / "model.safetensors")
    weights["model.layers.0.self_attn.v_proj.weight"] *= 1e6
    save_file(weights, source / "model.safetensors", metadata={"format": "pt"})
    folders = {cache: convert(source, tmp_path / cache, cache=cache).folder for cache in MOST}
    with load(folders["bf16"]) as model, oga.Engine(model) as engine:
        assert len(list(engine.stream(PROMPT, max_new_tokens=4, ignore_eos=True))) == 4
    with (
        load(folders["fp16"]) as model,
        oga.Engine(model) as engine,
        pytest.raises(oga.ModelError, match="NaN"),
    ):
        list(engine.stream(PROMPT, max_new_tokens=4, ignore_eos=True))


def drawn(request: oga.Request) -> oga.TurnOptions:
    """Twelve tokens whose draws show small differences."""
    return oga.TurnOptions(
        request, max_generated_tokens=12, min_generated_tokens=12, do_sample=True, temperature=2.0, seed=5
    )


def load(folder: Path, **limits: int) -> oga.Model:
    with oga.Config(folder) as config:
        config.overlay({"engine": {"dynamic_batching": LIMITS | limits}})
        return oga.Model(config)


def scores(runner: PagedRunner) -> Floats:
    """The log-probability of each token of the prompt but the first, by the definition of the operators."""
    logits = np.concatenate([runner.step({0: PROMPT[:11]}), runner.step({0: PROMPT[11:]})]).astype(np.float64)
    logits -= np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen: Floats = logits[np.arange(len(PROMPT) - 1), PROMPT[1:]]
    return chosen


def engine_scores(folder: Path) -> Floats:
    """The same by the engine."""
    with load(folder, max_scheduled_tokens=11) as model, oga.Engine(model) as engine:
        stream = engine.stream(PROMPT, max_new_tokens=1, prompt_logprobs=0)
        list(stream)
        assert stream.prompt_logprobs is not None
        return np.array([entry.logprob for entry in stream.prompt_logprobs[1:] if entry is not None])
