"""Why a call failed: the codes that every :class:`oga.OgaError` carries."""

from __future__ import annotations

import enum

__all__ = ["StatusCode"]


class StatusCode(enum.IntEnum):
    """What kind of failure an error reports. The values equal ``OgaStatusCode`` of the C API and never change.

    Separate from :class:`oga.EngineErrorCode`, which an engine event carries.
    """

    OK = 0
    INVALID_ARGUMENT = 1
    INVALID_STATE = 2
    NOT_FOUND = 3
    UNSUPPORTED = 4
    RESOURCE_EXHAUSTED = 5
    IO_ERROR = 6
    MODEL_ERROR = 7
    ENGINE_UNHEALTHY = 8
    OUT_OF_MEMORY = 9
    INTERNAL = 10

    def __str__(self) -> str:
        return f"StatusCode.{self.name}"
