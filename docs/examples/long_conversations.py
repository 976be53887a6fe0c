"""Keeps a conversation going, takes a turn back, forks, and outlives the context: long_conversations.py FOLDER."""

import asyncio
import sys

import oga

ANSWER_TOKENS = 24
KEPT_TURNS = 2


async def ask(conversation: oga.Conversation, *questions: str) -> oga.Result:
    """One turn; says how much of it was new to the model."""
    messages = [{"role": "user", "content": question} for question in questions]
    result = await conversation.generate(messages, max_new_tokens=ANSWER_TOKENS)
    print(f"{questions[-1]}  -> {result.text!r}")
    print(f"  {result.usage.prompt_tokens} new tokens, the sequence has {conversation.tokens}")
    return result


async def continued(engine: oga.AsyncEngine, conversation: oga.Conversation, question: str) -> oga.Conversation:
    """Asks in the conversation, or, when it has no room left, in a new one that begins with its last turns."""
    room = engine.capabilities.max_request_length - conversation.tokens
    if room > 3 * ANSWER_TOKENS:
        await ask(conversation, question)
        return conversation
    print("  the context is full: beginning again with the last turns")
    kept = [
        message for turn in conversation.turns[-KEPT_TURNS:] for message in (*turn.messages, turn.answer) if message
    ]
    fresh = engine.open_conversation()
    await fresh.generate([*kept, {"role": "user", "content": question}], max_new_tokens=ANSWER_TOKENS)
    await conversation.close()
    return fresh


async def main(folder: str, more_turns: int = 8) -> None:
    """Talks."""
    async with oga.AsyncEngine(folder) as engine:
        conversation = engine.open_conversation()
        await ask(conversation, "My name is Ada.")
        await ask(conversation, "What is my name?")

        print("The second turn is taken back.")
        await conversation.rewind(2)
        await ask(conversation, "Greet me.")

        print("A fork goes its own way; what both share is computed and stored once.")
        fork = await conversation.fork()
        await asyncio.gather(ask(conversation, "In French."), ask(fork, "In Latin."))
        await fork.close()

        for number in range(more_turns):
            conversation = await continued(engine, conversation, f"Again, number {number + 1}.")
        await conversation.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2], *map(int, sys.argv[2:])))
