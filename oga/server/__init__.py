"""The HTTP server: an OpenAI-compatible face of :class:`oga.AsyncEngine`, and what operators need beside it.

One module per noun. The way of a request::

    asgi (id, size, log) > app (route) > auth (key) > body (strict JSON) > chat, completions, responses, sessions
      > sampling, formats, tools (to options of a turn) > choices (turns) > sse (to the client, or nobody is there)
"""

from oga.server.app import create_app
from oga.server.settings import ModelSource, ServerSettings

__all__ = ["ModelSource", "ServerSettings", "create_app"]
