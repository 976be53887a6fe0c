"""``/v1/sessions``: conversations that are kept in memory, to be continued, rewound and forked by their owner."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from oga.server import prompts
from oga.server.auth import Caller, caller
from oga.server.body import read
from oga.server.documents import answers
from oga.server.errors import ApiError
from oga.server.schemas.sessions import RewindRequest, SessionRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oga.aio import AsyncEngine, AsyncStream, Conversation
    from oga.chat import Message
    from oga.server.settings import ServerSettings

router = APIRouter()


class Session:
    """A conversation and whose it is."""

    def __init__(
        self, owner: str, model: str, engine: AsyncEngine, conversation: Conversation, first: list[dict[str, Any]]
    ) -> None:
        """``first`` are system messages that stand before the first turn."""
        self.identity = f"sess-{uuid.uuid4().hex}"
        self.owner = owner
        self.model = model
        self.engine = engine
        self.conversation = conversation
        self.first = first
        self.created = int(time.time())
        self.used = time.monotonic()

    def stream(
        self,
        messages: list[dict[str, Any]],
        encode: Callable[[Sequence[Message]], list[int]],
        settings: dict[str, Any],
        seed: int | None,
    ) -> AsyncStream:
        """The answer to what is new."""
        self.used = time.monotonic()

        def encode_all(whole: Sequence[Message]) -> list[int]:
            return encode([*self.first, *whole])

        return self.conversation.stream_encoded(messages, encode_all, **settings, seed=seed)

    def check_free(self) -> None:
        """Raises 409 while a turn goes on that somebody reads."""
        if self.conversation.is_busy and not self.conversation.is_leaving:
            raise ApiError(409, "A turn of the session is going on. Stop it first.", code="session_busy")

    def describe(self) -> dict[str, Any]:
        """The session object."""
        return {
            "id": self.identity,
            "object": "session",
            "created_at": self.created,
            "model": self.model,
            "busy": self.conversation.is_busy,
            "tokens": self.conversation.tokens,
            "system": [message["content"] for message in self.first],
            "turns": [
                {"turn": turn.number, "messages": list(turn.messages), "answer": turn.answer}
                for turn in self.conversation.turns
            ],
        }


class Sessions:
    """All kept sessions."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._sessions: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    async def add(self, session: Session) -> None:
        """Keeps a session. Raises 429 when there are too many, after closing those that nobody uses."""
        await self.expire()
        mine = len(self.of(session.owner))
        most, most_mine = self._settings.max_sessions, self._settings.max_sessions_per_key
        if len(self._sessions) >= most or mine >= most_mine:
            await session.conversation.close()
            raise ApiError(
                429,
                f"There are {len(self._sessions)} sessions ({mine} of yours); the server keeps {most}, and {most_mine} "
                "for one key. Delete one.",
                code="too_many_sessions",
                headers={"Retry-After": "60"},
            )
        self._sessions[session.identity] = session

    def of(self, owner: str) -> list[Session]:
        """The sessions of an owner, the oldest first."""
        return [session for session in self._sessions.values() if session.owner == owner]

    def take(self, identity: str, who: Caller) -> Session:
        """A session of the caller. Raises 404, also for somebody else's."""
        session = self._sessions.get(identity)
        if session is None or session.owner != who.name:
            raise ApiError(404, f"There is no session {identity!r}.", param="session_id", code="session_not_found")
        session.used = time.monotonic()
        return session

    async def remove(self, session: Session) -> None:
        """Closes a session and the turn that it has open."""
        self._sessions.pop(session.identity, None)
        await session.conversation.close()

    async def expire(self) -> None:
        """Closes sessions that nobody has used for long, and those of an engine that is gone."""
        oldest = time.monotonic() - self._settings.session_idle_seconds
        for session in list(self._sessions.values()):
            is_idle = session.used < oldest and not session.conversation.is_busy
            if is_idle or not session.engine.is_alive:
                await self.remove(session)


@router.post("/v1/sessions", status_code=201, **answers(SessionRequest, "session", 201, 400, 404, 413, 429, 503))
async def create_session(request: Request, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Opens a session. Chat completions with its ``session_id`` continue it."""
    body = await read(request, SessionRequest)
    model, engine = request.app.state.registry.find(body.model)
    first = prompts.messages_of(body.messages or [])
    conversation = engine.open_conversation(priority=body.priority, cache_salt=who.cache_salt)
    session = Session(who.name, model, engine, conversation, first)
    await request.app.state.sessions.add(session)
    return JSONResponse(session.describe(), 201)


@router.get("/v1/sessions", **answers(None, "list", 200))
async def list_sessions(request: Request, who: Annotated[Caller, Depends(caller)]) -> Response:
    """The sessions of the caller, the oldest first."""
    await request.app.state.sessions.expire()
    return JSONResponse(
        {"object": "list", "data": [session.describe() for session in request.app.state.sessions.of(who.name)]}
    )


@router.get("/v1/sessions/{session_id}", **answers(None, "session", 200, 404))
async def get_session(request: Request, session_id: str, who: Annotated[Caller, Depends(caller)]) -> Response:
    """A session and everything that was said in it."""
    return JSONResponse(request.app.state.sessions.take(session_id, who).describe())


@router.delete("/v1/sessions/{session_id}", **answers(None, "session.deleted", 200, 404))
async def delete_session(request: Request, session_id: str, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Closes a session; its cache is free at once."""
    session = request.app.state.sessions.take(session_id, who)
    await request.app.state.sessions.remove(session)
    return JSONResponse({"id": session_id, "object": "session.deleted", "deleted": True})


@router.post("/v1/sessions/{session_id}/rewind", **answers(RewindRequest, "session", 200, 400, 404, 409, 413))
async def rewind_session(request: Request, session_id: str, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Takes back a turn and all later ones."""
    body = await read(request, RewindRequest)
    session = request.app.state.sessions.take(session_id, who)
    session.check_free()
    request.state.fields = {"number": "turn"}
    await session.conversation.rewind(body.turn)
    return JSONResponse(session.describe())


@router.post("/v1/sessions/{session_id}/fork", status_code=201, **answers(None, "session", 201, 404, 409, 429))
async def fork_session(request: Request, session_id: str, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Opens a second session with the same turns; both go their own ways."""
    session = request.app.state.sessions.take(session_id, who)
    session.check_free()
    conversation = await session.conversation.fork()
    forked = Session(who.name, session.model, session.engine, conversation, list(session.first))
    await request.app.state.sessions.add(forked)
    return JSONResponse(forked.describe(), 201)
