"""Rounding to 4-bit blocks: closer than the plain rules, in every kind of block."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from oga.export.quantization import pack_nibbles, unpack_nibbles
from oga.export.rounding import round_to_nibbles

Array = npt.NDArray[np.float32]
# What the search must leave of the error of the plain rule on these weights, at most.
DISTRIBUTIONS = {"normal": 0.96, "laplace": 0.97, "with outliers": 0.97}


def weights(distribution: str) -> Array:
    random = np.random.default_rng(0)
    shape = (64, 1024)
    values = {
        "normal": lambda: random.standard_normal(shape),
        "laplace": lambda: random.laplace(size=shape),
        "with outliers": lambda: random.standard_t(4, size=shape),
    }[distribution]()
    return (values * 0.02).astype(np.float32)


def plainly_rounded(values: Array, block_size: int, *, symmetric: bool) -> Array:
    """Sixteen steps from the smallest to the largest weight, or from the largest magnitude to its opposite."""
    blocks = values.reshape(len(values), -1, block_size)
    if symmetric:
        at = np.abs(blocks).argmax(-1)[..., None]
        scale, zero = np.take_along_axis(blocks, at, -1) / -8, np.float32(8)
    else:
        lowest, highest = np.minimum(blocks.min(-1), 0)[..., None], np.maximum(blocks.max(-1), 0)[..., None]
        scale = (highest - lowest) / 15
        zero = np.rint(-lowest / scale)
    codes = np.clip(np.rint(blocks / scale) + zero, 0, 15)
    result: Array = ((codes - zero) * scale).reshape(values.shape).astype(np.float32)
    return result


def relative_error(found: Array, wanted: Array) -> float:
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("block_size", [16, 32, 64, 128, 256])
@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_the_search_leaves_less_error_than_the_plain_rule(distribution: str, block_size: int, symmetric: bool) -> None:
    values = weights(distribution)
    found = relative_error(round_to_nibbles(values, block_size, symmetric=symmetric).dequantized(), values)
    plain = relative_error(plainly_rounded(values, block_size, symmetric=symmetric), values)
    assert found < plain * DISTRIBUTIONS[distribution]


def test_the_error_on_normal_weights_is_what_the_documentation_says() -> None:
    values = weights("normal")
    assert relative_error(round_to_nibbles(values, 32, symmetric=False).dequantized(), values) < 0.078
    assert relative_error(round_to_nibbles(values, 32, symmetric=True).dequantized(), values) < 0.082


def test_no_block_is_worse_than_the_plain_rule_makes_it() -> None:
    values = weights("with outliers")
    for symmetric in (False, True):
        found = round_to_nibbles(values, 32, symmetric=symmetric).dequantized()
        plain = plainly_rounded(values, 32, symmetric=symmetric)
        errors = [((rounded - values).reshape(-1, 32) ** 2).sum(-1) for rounded in (found, plain)]
        assert (errors[0] <= errors[1] * 1.01).all()


def test_zero_points_help_blocks_that_lie_on_one_side() -> None:
    values = np.abs(weights("normal"))
    symmetric, shifted = (round_to_nibbles(values, 32, symmetric=each) for each in (True, False))
    assert symmetric.zero_points is None
    assert relative_error(shifted.dequantized(), values) < relative_error(symmetric.dequantized(), values) * 0.6


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("value", [0.0, 1.0, -0.3, 1e-30, 70000.0])
def test_blocks_of_one_weight_repeated_keep_it(value: float, symmetric: bool) -> None:
    values = np.full((3, 64), value, np.float32)
    found = round_to_nibbles(values, 32, symmetric=symmetric).dequantized()
    np.testing.assert_allclose(found, values, rtol=1e-3)


@pytest.mark.parametrize("columns", [1, 31, 33, 80])
def test_a_width_that_no_block_divides_is_filled_with_zeros(columns: int) -> None:
    values = weights("normal")[:, :columns]
    matrix = round_to_nibbles(values, 32, symmetric=False)
    assert matrix.codes.shape == (64, -(-columns // 32), 16)
    assert matrix.dequantized().shape == values.shape
    assert relative_error(matrix.dequantized(), values) < 0.1
    whole = (unpack_nibbles(matrix.codes) - matrix.float_zero_points()) * matrix.scales[..., None]
    assert (whole.reshape(64, -1)[:, columns:] == 0).all()


def test_scales_are_numbers_that_kernels_can_pack_as_float16() -> None:
    scales = round_to_nibbles(weights("laplace"), 32, symmetric=False).scales
    np.testing.assert_array_equal(scales, scales.astype(np.float16).astype(np.float32))


def test_rows_are_rounded_alone_whatever_is_rounded_with_them() -> None:
    values = np.tile(weights("normal"), (8, 1))
    whole = round_to_nibbles(values, 32, symmetric=False)
    part = round_to_nibbles(values[100:103], 32, symmetric=False)
    np.testing.assert_array_equal(whole.codes[100:103], part.codes)
    np.testing.assert_array_equal(whole.scales[100:103], part.scales)


def test_the_first_code_of_a_pair_lies_in_the_lower_half() -> None:
    codes = np.array([[1, 2, 3, 4, 5]], np.uint8)
    assert pack_nibbles(codes).tolist() == [[0x21, 0x43, 0x05]]
    assert unpack_nibbles(pack_nibbles(codes)).tolist() == [[1, 2, 3, 4, 5, 0]]
