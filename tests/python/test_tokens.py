"""Token arrays: whatever holds integers is accepted, whatever would be rounded, wrapped or cut is refused."""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oga
from oga._native.tokens import as_int32

INT32 = st.integers(-(2**31), 2**31 - 1)


def values(tokens: Any) -> list[int]:
    """What the C side would read."""
    converted = as_int32(tokens)
    return list(converted.pointer[0 : converted.length])


CONTAINERS: dict[str, Callable[[list[int]], Any]] = {
    "list": list,
    "tuple": tuple,
    "generator": lambda ids: (token for token in ids),
    "map": lambda ids: map(int, ids),
    "array": lambda ids: array.array("i", ids),
    "array of longs": lambda ids: array.array("q", ids),
    "memoryview": lambda ids: memoryview(array.array("q", ids)),
    "strided memoryview": lambda ids: memoryview(array.array("q", [t for token in ids for t in (token, 7)]))[::2],
    "int32": lambda ids: np.array(ids, np.int32),
    "int64": lambda ids: np.array(ids, np.int64),
    "big-endian": lambda ids: np.array(ids, ">i8"),
    "strided": lambda ids: np.repeat(np.array(ids, np.int64), 3)[::3],
    "reversed twice": lambda ids: np.array(ids, np.int32)[::-1].copy()[::-1],
    "column": lambda ids: np.stack([np.array(ids, np.int32), np.zeros(len(ids), np.int32)], axis=1)[:, 0],
    "objects": lambda ids: np.array([*ids, None], dtype=object)[:-1],
    "NumPy integers": lambda ids: [np.int64(token) for token in ids],
}


@pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)
@given(ids=st.lists(INT32, max_size=50))
def test_every_container_of_integers_is_read_exactly(container: Callable[[list[int]], Any], ids: list[int]) -> None:
    assert values(container(ids)) == ids


@given(kind=st.sampled_from("bBhHiIlLqQ"), data=st.data())
def test_every_integer_type_is_read_exactly_or_refused(kind: str, data: st.DataObject) -> None:
    bits, signed = np.dtype(kind).itemsize * 8, kind.islower()
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    ids = data.draw(st.lists(st.integers(low, high), max_size=20))
    fits = all(-(2**31) <= token < 2**31 for token in ids)
    for container in (np.array(ids, kind), memoryview(array.array(kind, ids))):
        if fits:
            assert values(container) == ids
        else:
            with pytest.raises(ValueError, match="does not fit"):
                values(container)


def test_contiguous_int32_memory_is_not_copied() -> None:
    from oga._native.loader import ffi

    for tokens in (np.arange(5, dtype=np.int32), array.array("i", range(5))):
        assert as_int32(tokens).pointer == ffi.cast("int32_t *", ffi.from_buffer(tokens))


def test_memory_that_cannot_be_written_is_read() -> None:
    tokens = np.arange(4, dtype=np.int32)
    tokens.flags.writeable = False
    assert values(tokens) == [0, 1, 2, 3]
    assert values(memoryview(tokens.tobytes()).cast("i")) == [0, 1, 2, 3]


def test_a_tensor_is_read() -> None:
    import torch

    assert values(torch.arange(6)[::2]) == [0, 2, 4]
    assert values(torch.tensor([7, 8], dtype=torch.uint8)) == [7, 8]
    with pytest.raises(TypeError):
        values(torch.tensor([1.5]))


def test_nothing_in_it_is_nothing() -> None:
    assert [values(empty) for empty in ([], (), range(0), np.array([]), np.array([], np.int64), iter(()))] == [[]] * 6


TOO_LARGE: list[tuple[Any, str]] = [
    ([1, 2**31], r"tokens\[1\] is 2147483648"),
    ([-(2**31) - 1], r"tokens\[0\] is -2147483649"),
    ((3, 4, 2**70), r"tokens\[2\] is 1180591620717411303424"),
    (np.array([5, 2**40]), r"tokens\[1\] is 1099511627776"),
    (np.array([5, 6, 2**32 - 1], np.uint32), r"tokens\[2\] is 4294967295"),
    (array.array("q", [2**33]), r"tokens\[0\] is 8589934592"),
    (range(2**31 - 1, 2**31 + 1), r"tokens\[1\] is 2147483648"),
]


@pytest.mark.parametrize(("tokens", "message"), TOO_LARGE)
def test_an_integer_that_does_not_fit_is_named_with_its_index(tokens: Any, message: str) -> None:
    with pytest.raises(oga.InvalidArgumentError, match=message) as caught:
        as_int32(tokens)
    assert isinstance(caught.value, ValueError)
    assert caught.value.code is oga.StatusCode.INVALID_ARGUMENT


WRONG_TYPES: list[tuple[Any, str]] = [
    ([1, 2.0], r"tokens\[1\] is 2.0 of type float"),
    ([1, "2"], r"tokens\[1\] is '2' of type str"),
    ([None], r"tokens\[0\] is None"),
    ([3, True], r"tokens\[1\] is True, a bool"),
    ([[1, 2], [3, 4]], r"tokens\[0\] is \[1, 2\] of type list"),
    (np.array([1.0, 2.0]), "float64"),
    (np.array([True, False]), "bool"),
    (array.array("d", [1.0]), "format 'd'"),
    (memoryview(array.array("f", [1.0])), "format 'f'"),
    (np.array([1, 2.5], dtype=object), r"tokens\[1\] is 2.5"),
    (np.array(["a"]), "<U1"),
    (None, "NoneType"),
    ("12", "str"),
    (b"12", "bytes"),
    (5, "int"),
    ({1: 2}, "dict"),
    ({1, 2}, "set"),
]


@pytest.mark.parametrize(("tokens", "message"), WRONG_TYPES)
def test_what_is_no_integer_is_a_type_error(tokens: Any, message: str) -> None:
    with pytest.raises(oga.ArgumentTypeError, match=message) as caught:
        as_int32(tokens)
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize("tokens", [np.zeros((2, 2), np.int32), np.array(3), memoryview(np.zeros((1, 1), np.int32))])
def test_an_array_must_have_one_dimension(tokens: npt.NDArray[np.int32]) -> None:
    with pytest.raises(oga.InvalidArgumentError, match="must have one dimension"):
        as_int32(tokens)
