"""The events of a streamed response."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oga.server.response_items import call_item, message_item, text_part
from oga.server.sse import event
from oga.server.tools import CallStart, Content

if TYPE_CHECKING:
    from oga.server.tools import Part


class ResponseStream:
    """Numbers the events and keeps items open while they grow: the text, then calls, one after the other."""

    def __init__(self, identity: str, begun: dict[str, Any]) -> None:
        self._identity = identity
        self._begun = begun
        self._sequence = 0
        self._open: dict[str, Any] | None = None
        self._count = 0

    def begin(self) -> Iterator[bytes]:
        """The response exists."""
        yield self._event("response.created", response=self._begun)
        yield self._event("response.in_progress", response=self._begun)

    def parts(self, parts: list[Part]) -> Iterator[bytes]:
        """More output."""
        for part in parts:
            if isinstance(part, Content):
                if self._open is None or self._open["type"] != "message":
                    yield from self._add(message_item(self._identity, None, "in_progress"))
                    place = self._place() | {"content_index": 0}
                    yield self._event("response.content_part.added", **place, part=text_part(""))
                    self._open["content"] = [text_part("")]  # type: ignore[index]
                yield from self._grow_text(part.text)
            elif isinstance(part, CallStart):
                yield from self._add(call_item(part.identity, part.name, "", "in_progress"))
            else:
                assert self._open is not None
                self._open["arguments"] += part.text
                yield self._event("response.function_call_arguments.delta", **self._place(), delta=part.text)

    def end(self, answer: dict[str, Any]) -> Iterator[bytes]:
        """The response is complete, or was cut off."""
        if self._count == 0:
            yield from self.parts([Content("")])
        yield from self._close(answer["output"][-1]["status"])
        yield self._event(f"response.{answer['status']}", response=answer)

    def _grow_text(self, text: str) -> Iterator[bytes]:
        assert self._open is not None
        if text:
            self._open["content"][0]["text"] += text
            place = self._place() | {"content_index": 0}
            yield self._event("response.output_text.delta", **place, delta=text, logprobs=[])

    def _add(self, item: dict[str, Any]) -> Iterator[bytes]:
        yield from self._close("completed")
        self._open = item
        self._count += 1
        yield self._event("response.output_item.added", output_index=self._count - 1, item=dict(item))

    def _close(self, status: str) -> Iterator[bytes]:
        item, place = self._open, self._place()
        if item is None:
            return
        if item["type"] == "message":
            part = item["content"][0]
            place["content_index"] = 0
            yield self._event("response.output_text.done", **place, text=part["text"], logprobs=[])
            yield self._event("response.content_part.done", **place, part=part)
        else:
            yield self._event(
                "response.function_call_arguments.done", **place, arguments=item["arguments"], name=item["name"]
            )
        item["status"] = status
        yield self._event("response.output_item.done", output_index=self._count - 1, item=item)
        self._open = None

    def _place(self) -> dict[str, Any]:
        return {} if self._open is None else {"item_id": self._open["id"], "output_index": self._count - 1}

    def _event(self, kind: str, **fields: Any) -> bytes:
        value = {"type": kind, "sequence_number": self._sequence, **fields}
        self._sequence += 1
        return event(value, kind)
