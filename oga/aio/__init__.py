"""The asyncio engine: any number of tasks over one engine, which a thread of its own runs."""

from oga.aio.conversation import Conversation, ConversationTurn
from oga.aio.engine import AsyncEngine
from oga.aio.stream import AsyncStream

__all__ = ["AsyncEngine", "AsyncStream", "Conversation", "ConversationTurn"]
