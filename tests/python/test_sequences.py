"""Sequences: token sequences of any lengths."""

from __future__ import annotations

import numpy as np
import pytest

import oga


def test_sequences_come_back_as_they_went_in() -> None:
    with oga.Sequences() as sequences:
        for tokens in ([1, 2, 3], [], np.array([4, 0, 5])[::2]):
            sequences.append(tokens)
        assert len(sequences) == 3
        assert [tokens.tolist() for tokens in sequences] == [[1, 2, 3], [], [4, 5]]
        assert sequences[-1].dtype == np.int32
        assert sequences[-1].tolist() == [4, 5]


def test_single_tokens_extend_or_start_a_sequence() -> None:
    with oga.Sequences() as sequences:
        sequences.append_token(7, 0)
        sequences.append_token(8, 0)
        sequences.append_token(-9, 1)
        assert [tokens.tolist() for tokens in sequences] == [[7, 8], [-9]]
        with pytest.raises(oga.InvalidArgumentError):
            sequences.append_token(1, 3)
        assert len(sequences) == 2


def test_what_comes_back_is_a_copy() -> None:
    sequences = oga.Sequences()
    sequences.append([1, 2])
    first = sequences[0]
    sequences.append([3])
    sequences.close()
    assert first.tolist() == [1, 2]


def test_indices_behave_as_those_of_a_list() -> None:
    with oga.Sequences() as sequences:
        sequences.append([1])
        for index in (1, -2):
            with pytest.raises(IndexError):
                sequences[index]
        with pytest.raises(TypeError):
            sequences[0:1]  # type: ignore[index]


def test_what_does_not_fit_is_refused() -> None:
    with oga.Sequences() as sequences:
        with pytest.raises(oga.InvalidArgumentError, match="does not fit"):
            sequences.append([2**31])
        with pytest.raises(TypeError, match="token"):
            sequences.append_token(2**31, 0)
        with pytest.raises(TypeError, match="sequence_index"):
            sequences.append_token(1, -1)
        assert len(sequences) == 0


def test_a_closed_list_says_so() -> None:
    sequences = oga.Sequences()
    sequences.close()
    for use in (lambda: len(sequences), lambda: sequences.append([1]), lambda: sequences.append_token(1, 0)):
        with pytest.raises(oga.InvalidStateError, match="Sequences cannot be used"):
            use()
