"""The items of the responses API, to and from messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oga.server import prompts
from oga.server.schemas.common import Function, NamedFunction, NamedTool, Tool, ToolChoice
from oga.server.schemas.responses import FunctionCall, FunctionCallOutput, InputItem, NamedResponseTool, ResponseTool

if TYPE_CHECKING:
    from oga.server.chat import Collected
    from oga.server.schemas.responses import ResponseRequest


def as_message(item: InputItem) -> dict[str, Any]:
    """An input item as a chat message."""
    if isinstance(item, FunctionCall):
        function = {"name": item.name, "arguments": prompts.arguments_of(item.arguments)}
        call = {"id": item.call_id, "type": "function", "function": function}
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if isinstance(item, FunctionCallOutput):
        return {"role": "tool", "content": item.output, "tool_call_id": item.call_id}
    text = item.content if isinstance(item.content, str) else "".join(part.text for part in item.content)
    return {"role": "system" if item.role == "developer" else item.role, "content": text}


def as_tool(tool: ResponseTool) -> Tool:
    """A tool as chat completions have it."""
    function = Function(name=tool.name, description=tool.description, parameters=tool.parameters, strict=tool.strict)
    return Tool(type="function", function=function)


def as_tool_choice(choice: str | NamedResponseTool | None) -> ToolChoice | None:
    """A choice as chat completions have it."""
    if isinstance(choice, NamedResponseTool):
        return NamedTool(type="function", function=NamedFunction(name=choice.name))
    return choice  # type: ignore[return-value]


def message_item(response_id: str, text: str | None, status: str) -> dict[str, Any]:
    """The item of an answer's text."""
    content = [] if text is None else [text_part(text)]
    identity = f"msg_{response_id.removeprefix('resp_')}"
    return {"id": identity, "type": "message", "role": "assistant", "status": status, "content": content}


def text_part(text: str) -> dict[str, Any]:
    """The part of an item that holds text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def call_item(identity: str, name: str, arguments: str, status: str) -> dict[str, Any]:
    """The item of a call."""
    return {
        "id": f"fc_{identity.removeprefix('call_')}",
        "type": "function_call",
        "call_id": identity,
        "name": name,
        "arguments": arguments,
        "status": status,
    }


def output_of(message: Collected, response_id: str, *, is_cut: bool) -> list[dict[str, Any]]:
    """The output items of an answer. What was cut off is incomplete: the last item."""
    items = []
    if message.text or not message.calls:
        items.append(message_item(response_id, message.text, "completed"))
    items += [
        call_item(call["id"], call["function"]["name"], call["function"]["arguments"], "completed")
        for call in message.calls
    ]
    if is_cut:
        items[-1]["status"] = "incomplete"
    return items


def response_object(
    body: ResponseRequest, identity: str, created: int, model: str, status: str, output: list[dict[str, Any]]
) -> dict[str, Any]:
    """The response object."""
    given = body.model_dump(by_alias=True, exclude_none=True)
    return {
        "id": identity,
        "object": "response",
        "created_at": created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": body.instructions,
        "max_output_tokens": body.max_output_tokens,
        "metadata": body.metadata or {},
        "model": model,
        "output": output,
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "previous_response_id": body.previous_response_id,
        "store": body.store is not False,
        "temperature": body.temperature,
        "text": given.get("text", {"format": {"type": "text"}}),
        "tool_choice": given.get("tool_choice", "auto"),
        "tools": given.get("tools", []),
        "top_p": body.top_p,
        "truncation": "disabled",
        "usage": None,
    }
