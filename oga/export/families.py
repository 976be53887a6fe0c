"""Model families of Hugging Face configs: one row of a table each, read into a DecoderSpec.

A family is what its config cannot say by itself. The graph builder never asks for a family's name.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from oga.export.errors import ConversionError
from oga.export.fields import Fields
from oga.export.spec import DecoderSpec, RopeSpec, TokenSpec

_ROPE_KINDS: dict[str, Literal["default", "linear", "llama3"]] = {
    "default": "default",
    "linear": "linear",
    "llama3": "llama3",
}
_SEARCH_FIELDS = ("temperature", "top_p", "repetition_penalty")


@dataclass(frozen=True)
class Family:
    """What distinguishes a family.

    Attributes:
        qkv_bias: query, key and value projections have biases, whatever the config says.
        optional_biases: the config's attention_bias gives all attention projections biases.
        optional_mlp_bias: the config's mlp_bias gives the feed-forward projections biases.
        qk_norm: each query and key head passes an RMS norm before the rotary embedding.
        window: the layers whose attention the config's sliding_window limits: none, all, or, when use_sliding_window
            is set, those that layer_types or max_window_layers name.
        default_kv_heads: what a config means that does not mention num_key_value_heads; None is one per head.
        default_head_size: what a config means that does not mention head_dim; None is hidden_size / heads.
        default_window: what a config means that does not mention sliding_window.
        default_bos: what a config means that does not mention bos_token_id.
        default_eos: what a config means that does not mention eos_token_id.
    """

    qkv_bias: bool = False
    optional_biases: bool = False
    optional_mlp_bias: bool = False
    qk_norm: bool = False
    window: Literal["none", "all", "chosen"] = "none"
    default_kv_heads: int | None = None
    default_head_size: int | None = None
    default_window: int | None = None
    default_bos: int | None = 1
    default_eos: int | None = 2


_QWEN = Family(window="chosen", default_kv_heads=32, default_window=4096, default_bos=None, default_eos=None)
FAMILIES: dict[str, Family] = {
    "llama": Family(optional_biases=True, optional_mlp_bias=True),
    "mistral": Family(window="all", default_kv_heads=8, default_window=4096),
    "qwen2": replace(_QWEN, qkv_bias=True),
    "qwen3": replace(_QWEN, optional_biases=True, qk_norm=True, default_head_size=128),
}
# The first layer with a window in a config that chooses layers but does not say which.
_DEFAULT_MAX_WINDOW_LAYERS = 28
_LAYER_KINDS = ("full_attention", "sliding_attention")


def spec_from_config(config: Fields, generation: Fields) -> DecoderSpec:
    """Reads config.json and generation_config.json into a spec.

    Args:
        config: the fields of config.json.
        generation: the fields of generation_config.json; empty when there is none.

    Raises:
        ConversionError: for an unknown family, or a value that is missing, wrong, or not supported.
    """
    name = config.text("model_type")
    family = FAMILIES.get(name)
    if family is None:
        known = ", ".join(sorted(FAMILIES))
        raise ConversionError(f'{config.where}: model_type "{name}" is no family that can be converted; known: {known}')
    _refuse_what_would_be_ignored(config)
    heads = config.integer("num_attention_heads")
    kv_heads = heads if config.mentions("num_key_value_heads") else family.default_kv_heads or heads
    head_size = None if config.mentions("head_dim") else family.default_head_size
    bias = family.optional_biases and config.boolean("attention_bias", False)
    spec = DecoderSpec(
        family=name,
        hidden_size=config.integer("hidden_size"),
        intermediate_size=config.integer("intermediate_size"),
        num_layers=config.integer("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=config.integer("num_key_value_heads", kv_heads),
        head_size=config.integer("head_dim", head_size) or config.integer("hidden_size") // max(heads, 1),
        vocab_size=config.integer("vocab_size"),
        norm_epsilon=config.number("rms_norm_eps", 1e-6),
        context_length=config.integer("max_position_embeddings"),
        rope=_rope(config),
        tokens=_tokens(config, generation, family),
        tied_embeddings=config.boolean("tie_word_embeddings", False),
        qkv_bias=family.qkv_bias or bias,
        output_bias=bias,
        mlp_bias=family.optional_mlp_bias and config.boolean("mlp_bias", False),
        qk_norm=family.qk_norm,
        windows=_windows(config, family),
    )
    spec.check(config.where)
    return spec


def _refuse_what_would_be_ignored(config: Fields) -> None:
    if "quantization_config" in config:
        method = config.section("quantization_config").text("quant_method", "unknown")
        raise ConversionError(
            f"{config.where}: the weights are quantised ({method}); convert the original float folder or a GGUF file"
        )
    activation = config.text("hidden_act", "silu")
    if activation not in ("silu", "swish"):
        raise config.wrong("hidden_act", activation, '"silu"; other activations cannot be converted')


def _windows(config: Fields, family: Family) -> tuple[int | None, ...]:
    """The window of each layer; none at all where no layer has one."""
    if family.window == "none":
        return ()
    layers: int = config.integer("num_hidden_layers")
    default = None if config.mentions("sliding_window") else family.default_window
    size: int | None = config.integer("sliding_window", default)
    if size is None:
        return ()
    if family.window == "all":
        return (size,) * layers
    if not config.boolean("use_sliding_window", False):
        return ()
    if "layer_types" not in config:
        first = config.integer("max_window_layers", _DEFAULT_MAX_WINDOW_LAYERS)
        return tuple(size if layer >= first else None for layer in range(layers))
    kinds = config.strings("layer_types")
    if len(kinds) != layers or not set(kinds) <= set(_LAYER_KINDS):
        raise config.wrong("layer_types", kinds, f"a list of {layers} entries out of {', '.join(_LAYER_KINDS)}")
    return tuple(size if kind == "sliding_attention" else None for kind in kinds)


def _rope(config: Fields) -> RopeSpec:
    """Reads rope_parameters, or the older pair of rope_theta and rope_scaling."""
    rope = config.section("rope_parameters" if "rope_parameters" in config else "rope_scaling")
    kind = rope.text("rope_type", None) or rope.text("type", "default")
    if kind not in _ROPE_KINDS:
        known = ", ".join(_ROPE_KINDS)
        raise ConversionError(f'{rope.where}: rope type "{kind}" cannot be converted; known: {known}')
    partial = rope.number("partial_rotary_factor", config.number("partial_rotary_factor", 1.0))
    if partial != 1.0:
        raise rope.wrong("partial_rotary_factor", partial, "1; partial rotary embedding cannot be converted")
    theta = rope.number("rope_theta", None) or config.number("rope_theta", 10000.0)
    if kind == "default":
        return RopeSpec(theta)
    if kind == "linear":
        return RopeSpec(theta, "linear", rope.number("factor"))
    return RopeSpec(
        theta,
        "llama3",
        rope.number("factor"),
        rope.number("low_freq_factor"),
        rope.number("high_freq_factor"),
        rope.integer("original_max_position_embeddings"),
    )


def _tokens(config: Fields, generation: Fields, family: Family) -> TokenSpec:
    eos = generation.integers("eos_token_id") + config.integers("eos_token_id")
    if not eos and family.default_eos is not None and not config.mentions("eos_token_id"):
        eos = [family.default_eos]
    bos = None if config.mentions("bos_token_id") else family.default_bos
    search = {name: generation.number(name) for name in _SEARCH_FIELDS if name in generation}
    if "do_sample" in generation:
        search["do_sample"] = generation.boolean("do_sample")
    if "top_k" in generation:
        search["top_k"] = generation.integer("top_k")
    return TokenSpec(
        bos=generation.integer("bos_token_id", config.integer("bos_token_id", bos)),
        eos=tuple(dict.fromkeys(eos)),
        pad=generation.integer("pad_token_id", config.integer("pad_token_id", None)),
        search=search,
    )
