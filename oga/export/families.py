"""Model families of Hugging Face configs: one row of a table each, read into a DecoderSpec.

A family is what its config cannot say by itself. The graph builder never asks for a family's name.
"""

from __future__ import annotations

from dataclasses import dataclass
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
        optional_biases: the config says whether projections have biases; otherwise they have none.
        window: the config's sliding_window limits attention; otherwise it is ignored, as the family does.
        default_kv_heads: what a config means that does not mention num_key_value_heads; None is one per head.
        default_window: what a config means that does not mention sliding_window.
    """

    optional_biases: bool = False
    window: bool = False
    default_kv_heads: int | None = None
    default_window: int | None = None


FAMILIES: dict[str, Family] = {
    "llama": Family(optional_biases=True),
    "mistral": Family(window=True, default_kv_heads=8, default_window=4096),
}
# What configs of these families mean that do not mention the ids.
_DEFAULT_BOS, _DEFAULT_EOS = 1, 2


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
    window = None if config.mentions("sliding_window") else family.default_window
    bias = family.optional_biases and config.boolean("attention_bias", False)
    spec = DecoderSpec(
        family=name,
        hidden_size=config.integer("hidden_size"),
        intermediate_size=config.integer("intermediate_size"),
        num_layers=config.integer("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=config.integer("num_key_value_heads", kv_heads),
        head_size=config.integer("head_dim", None) or config.integer("hidden_size") // max(heads, 1),
        vocab_size=config.integer("vocab_size"),
        norm_epsilon=config.number("rms_norm_eps", 1e-6),
        context_length=config.integer("max_position_embeddings"),
        rope=_rope(config),
        tokens=_tokens(config, generation),
        tied_embeddings=config.boolean("tie_word_embeddings", False),
        qkv_bias=bias,
        output_bias=bias,
        mlp_bias=family.optional_biases and config.boolean("mlp_bias", False),
        window=config.integer("sliding_window", window) if family.window else None,
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


def _tokens(config: Fields, generation: Fields) -> TokenSpec:
    eos = generation.integers("eos_token_id") + config.integers("eos_token_id")
    if not eos and not config.mentions("eos_token_id"):
        eos = [_DEFAULT_EOS]
    bos = None if config.mentions("bos_token_id") else _DEFAULT_BOS
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
