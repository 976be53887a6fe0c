"""Asks a model one question and prints the answer while it is made: first_answer.py FOLDER [QUESTION]."""

import sys

import oga


def main(folder: str, question: str = "What is the capital of France?") -> None:
    """Answers one question."""
    with oga.Model(folder) as model, oga.Engine(model) as engine:
        stream = engine.stream([{"role": "user", "content": question}], max_new_tokens=48)
        for text in stream:
            print(text, end="", flush=True)
        print()
        print(f"{stream.finish_reason.name}: {stream.usage}")


if __name__ == "__main__":
    main(*sys.argv[1:])
