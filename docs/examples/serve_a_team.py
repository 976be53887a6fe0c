"""Several people ask one server at once, through OpenAI's client: serve_a_team.py URL [KEY]."""

import asyncio
import sys

from openai import AsyncOpenAI

QUESTIONS = {
    "Ada": "Name three colours of the rainbow.",
    "Ben": "What is the capital of France?",
    "Cleo": "Write one sentence about the sea.",
}


async def ask(client: AsyncOpenAI, model: str, person: str, question: str) -> None:
    """Streams one answer and counts its tokens."""
    stream = await client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": question}],
        max_tokens=24,
        stream=True,
        stream_options={"include_usage": True},
    )
    text = ""
    async for chunk in stream:
        if chunk.choices:
            text += chunk.choices[0].delta.content or ""
        elif chunk.usage:
            print(f"{person}: {chunk.usage.completion_tokens} tokens: {text!r}")


async def main(url: str, key: str = "none") -> None:
    """Lets everybody ask at the same time."""
    async with AsyncOpenAI(base_url=f"{url}/v1", api_key=key) as client:
        model = (await client.models.list()).data[0].id
        print(f"{url} serves {model}")
        await asyncio.gather(*(ask(client, model, person, question) for person, question in QUESTIONS.items()))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
