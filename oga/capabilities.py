"""The fixed limits of an engine."""

from __future__ import annotations

from typing import Any

from oga._native.loader import lib

__all__ = ["EngineCapabilities"]


class EngineCapabilities:
    """An immutable snapshot of an engine's limits, made by :meth:`oga.Engine.get_capabilities`. Any thread."""

    __slots__ = ("_limits",)
    _limits: tuple[int, int, int, bool]

    def __init__(self) -> None:
        raise TypeError("oga.EngineCapabilities: No constructor defined! Use Engine.get_capabilities().")

    @classmethod
    def _take(cls, pointer: Any) -> EngineCapabilities:
        """Copies a native snapshot and frees it."""
        self = cls.__new__(cls)
        self._limits = (
            lib.OgaEngineCapabilitiesGetConfiguredMaxBatchSize(pointer),
            lib.OgaEngineCapabilitiesGetMaxScheduledTokens(pointer),
            lib.OgaEngineCapabilitiesGetMaxRequestLength(pointer),
            lib.OgaEngineCapabilitiesGetPrefixCaching(pointer),
        )
        lib.OgaDestroyEngineCapabilities(pointer)
        return self

    @property
    def configured_max_batch_size(self) -> int:
        """The most requests one step may contain."""
        return self._limits[0]

    @property
    def max_scheduled_tokens(self) -> int:
        """The most tokens one step may feed to the model."""
        return self._limits[1]

    @property
    def max_request_length(self) -> int:
        """The longest sequence (prompt, output and continuations) a request may reach, in tokens."""
        return self._limits[2]

    @property
    def prefix_caching(self) -> bool:
        """Whether requests share the cached blocks of a common beginning."""
        return self._limits[3]

    def __repr__(self) -> str:
        return (
            f"<oga.EngineCapabilities configured_max_batch_size={self.configured_max_batch_size} "
            f"max_scheduled_tokens={self.max_scheduled_tokens} max_request_length={self.max_request_length} "
            f"prefix_caching={self.prefix_caching}>"
        )
