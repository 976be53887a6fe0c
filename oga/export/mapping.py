"""Gives back the memory of mapped files that were read."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import numpy.typing as npt


def release_pages(view: npt.NDArray[Any]) -> None:
    """Lets go of the pages behind a view of a mapped file; reading it again brings them back.

    Without this a conversion would seem to need as much memory as its source is large. An array that is no view of a
    read-only mapped file stays as it is.
    """
    if not view.nbytes or view.flags.writeable:
        return
    owner: Any = view
    while isinstance(owner, np.ndarray | memoryview):
        owner = owner.base if isinstance(owner, np.ndarray) else owner.obj
    if not isinstance(owner, mmap.mmap):
        return
    start = _address(view) - _address(np.frombuffer(owner, np.uint8))
    begin = start - start % mmap.PAGESIZE
    owner.madvise(mmap.MADV_DONTNEED, begin, start + view.nbytes - begin)


def _address(array: npt.NDArray[Any]) -> int:
    address: int = array.__array_interface__["data"][0]
    return address
