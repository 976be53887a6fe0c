"""Asks for facts and gets a JSON object of a fixed form: constrained_json.py FOLDER [TEXT]."""

import json
import sys

import oga

SCHEMA = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["city", "river", "person", "other"]},
        "name": {"type": "string", "maxLength": 24},
        "confidence": {"type": "integer", "minimum": 0, "maximum": 100},
    },
    "required": ["kind", "name", "confidence"],
    "additionalProperties": False,
}


def main(folder: str, text: str = "The Seine flows through Paris.") -> None:
    """Prints what the model says about a text."""
    question = f"Describe what this text is about, as JSON: {text}"
    with oga.Model(folder) as model, oga.Engine(model) as engine:
        stream = engine.stream(
            [{"role": "user", "content": question}],
            guidance=("json_schema", json.dumps(SCHEMA)),
            max_new_tokens=600,
        )
        answer = "".join(stream)
    if stream.finish_reason is not oga.FinishReason.EOS:
        sys.exit(f"The answer was cut off ({stream.finish_reason.name}): give it more tokens.")
    found = json.loads(answer)
    for name, value in found.items():
        print(f"{name}: {value}")


if __name__ == "__main__":
    main(*sys.argv[1:])
