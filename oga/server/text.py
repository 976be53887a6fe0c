"""``/tokenize`` and ``/detokenize``."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from oga.server import prompts
from oga.server.auth import Caller, caller
from oga.server.body import read
from oga.server.documents import answers
from oga.server.errors import refused
from oga.server.schemas.sessions import DetokenizeRequest, TokenizeRequest

router = APIRouter()


@router.post("/tokenize", **answers(TokenizeRequest, "tokens", 200, 400, 404, 413, 503))
async def tokenize(request: Request, _: Annotated[Caller, Depends(caller)]) -> Response:
    """Token ids of a text, or of messages as the chat template writes them."""
    body = await read(request, TokenizeRequest)
    _, engine = request.app.state.registry.find(body.model)
    given = "prompt" if body.messages is None else "messages"
    request.state.fields = {"tokens": given, "text": given}
    if (body.prompt is None) == (body.messages is None):
        raise refused("Give either prompt or messages.", param="prompt")
    if body.messages is not None:
        variables = dict(body.chat_template_kwargs or {})
        encode = prompts.encoder(engine, body.tools, variables, body.add_generation_prompt is not False)
        tokens = await engine.encode(prompts.messages_of(body.messages), encode)
    else:
        assert body.prompt is not None
        tokenizer = engine.model.tokenizer
        is_plain = body.add_special_tokens is False
        encode_text = partial(tokenizer.encode, add_special_tokens=False) if is_plain else tokenizer.encode_prompt
        tokens = await engine.encode(body.prompt, encode_text)
    listed = [int(token) for token in tokens]
    longest = engine.capabilities.max_request_length
    return JSONResponse({"object": "tokens", "count": len(listed), "max_model_len": longest, "tokens": listed})


@router.post("/detokenize", **answers(DetokenizeRequest, "text", 200, 400, 404, 413, 503))
async def detokenize(request: Request, _: Annotated[Caller, Depends(caller)]) -> Response:
    """The text of token ids, special tokens included unless the request says otherwise."""
    body = await read(request, DetokenizeRequest)
    _, engine = request.app.state.registry.find(body.model)
    request.state.fields = {"tokens": "tokens"}
    decode = partial(engine.model.tokenizer.decode, body.tokens, skip_special_tokens=bool(body.skip_special_tokens))
    return JSONResponse({"object": "text", "text": await engine.run_on_text_thread(decode)})
