"""Twenty JSON schemas of growing difficulty, and answers of a model to them, judged by ``jsonschema``."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import jsonschema

import oga

Schema = dict[str, Any]


class Case(NamedTuple):
    """What is asked, and the form of the answer."""

    name: str
    question: str
    schema: Schema


def text(longest: int, shortest: int = 0) -> Schema:
    return {"type": "string", "minLength": shortest, "maxLength": longest}


def form(properties: Schema, optional: Iterable[str] = (), **more: Any) -> Schema:
    required = [name for name in properties if name not in set(optional)]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False, **more}


def whole(least: int, most: int) -> Schema:
    return {"type": "integer", "minimum": least, "maximum": most}


CASES = (
    Case("boolean", "Is the sky blue?", {"type": "boolean"}),
    Case("integer range", "How warm is it today, in degrees?", whole(-25, 142)),
    Case("enum", "What is your favourite?", {"enum": ["red", "green", 7, None, {"mixed": ["é", 1.5]}]}),
    Case("const", "Say hello.", {"const": {"hello": ["world", 1, None, True]}}),
    Case("string length", "Describe the sea.", text(60, 12)),
    Case("pattern", "Make up an order number.", {"type": "string", "pattern": "^[A-Z]{2}-[0-9]{4}(-(new|old))?$"}),
    Case(
        "number range",
        "How likely is rain tomorrow?",
        form({"chance": {"type": "number", "exclusiveMinimum": 0, "maximum": 1}, "degrees": {"type": "number"}}),
    ),
    Case("multiple", "Name a price in cents.", {"type": "integer", "multipleOf": 25, "minimum": 50, "maximum": 10000}),
    Case("flat object", "Invent a person.", form({"name": text(30, 1), "age": whole(0, 120)})),
    Case(
        "optional properties",
        "Describe a city.",
        form(
            {"name": text(20), "country": text(20), "capital": {"type": "boolean"}, "twins": whole(0, 40)},
            optional=("country", "twins"),
        ),
    ),
    Case("array bounds", "Name lucky numbers.", {"type": "array", "items": whole(1, 49), "minItems": 3, "maxItems": 6}),
    Case(
        "tuple",
        "Where is Paris?",
        {
            "type": "array",
            "prefixItems": [text(20, 1), {"type": "number", "minimum": -90, "maximum": 90}, {"enum": ["N", "S"]}],
            "minItems": 3,
            "items": False,
        },
    ),
    Case(
        "nested objects",
        "Describe a house.",
        form({"address": form({"street": text(30), "geo": form({"lat": whole(-90, 90), "long": whole(-180, 180)})})}),
    ),
    Case(
        "array of objects",
        "List some books.",
        form(
            {
                "books": {
                    "type": "array",
                    "items": form({"title": text(30, 1), "year": whole(1450, 2030), "lent": {"type": "boolean"}}),
                    "minItems": 1,
                    "maxItems": 3,
                }
            }
        ),
    ),
    Case(
        "anyOf",
        "Answer with anything.",
        {
            "anyOf": [
                whole(0, 999),
                text(20),
                {"type": "null"},
                form({"list": {"type": "array", "items": whole(0, 9), "maxItems": 4}}),
            ]
        },
    ),
    Case(
        "oneOf by a const",
        "Draw a shape.",
        {
            "oneOf": [
                form({"kind": {"const": "circle"}, "radius": whole(1, 50)}),
                form({"kind": {"const": "square"}, "side": whole(1, 50)}),
                form({"kind": {"const": "path"}, "points": {"type": "array", "items": whole(0, 9), "maxItems": 5}}),
            ]
        },
    ),
    Case(
        "formats",
        "Make up a log entry.",
        form(
            {
                "day": {"type": "string", "format": "date"},
                "at": {"type": "string", "format": "date-time", "maxLength": 25},
                "mail": {"type": "string", "format": "email", "maxLength": 30},
                "host": {"type": "string", "format": "ipv4"},
                "id": {"type": "string", "format": "uuid"},
            }
        ),
    ),
    Case(
        "named properties",
        "Count the animals of a farm.",
        {
            "type": "object",
            "properties": {"total": whole(1, 500)},
            "patternProperties": {"^[a-z]{3,8}s$": whole(0, 99)},
            "required": ["total"],
            "additionalProperties": False,
        },
    ),
    Case(
        "recursion",
        "Which of these two words comes first?",
        {
            "$defs": {
                "tree": {
                    "anyOf": [
                        {"enum": ["one", "two", None]},
                        form({"left": {"$ref": "#/$defs/tree"}, "right": {"$ref": "#/$defs/tree"}}),
                    ]
                }
            },
            "$ref": "#/$defs/tree",
        },
    ),
    Case(
        "an order",
        "Order breakfast.",
        {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Order",
            "$defs": {
                "money": form(
                    {"amount": {"type": "number", "minimum": 0, "maximum": 100}, "unit": {"enum": ["EUR", "USD"]}}
                ),
                "item": {
                    "allOf": [
                        {"type": "object", "properties": {"what": text(24, 2)}, "required": ["what"]},
                        {
                            "type": "object",
                            "properties": {
                                "what": {"type": "string", "pattern": "^[A-Za-z ]+$"},
                                "price": {"$ref": "#/$defs/money"},
                            },
                            "required": ["price"],
                            "additionalProperties": False,
                        },
                    ]
                },
            },
            **form(
                {
                    "id": {"type": "string", "pattern": "^[0-9a-f]{8}$"},
                    "items": {"type": "array", "items": {"$ref": "#/$defs/item"}, "minItems": 1, "maxItems": 2},
                    "note": {"type": ["string", "null"], "maxLength": 30},
                    "paid": {"anyOf": [{"const": False}, {"$ref": "#/$defs/money"}]},
                },
                optional=("note",),
            ),
        },
    ),
)

FORMATS = jsonschema.FormatChecker()


@FORMATS.checks("date-time", raises=ValueError)
def is_moment(value: object) -> bool:
    """RFC 3339, which has leap seconds and small letters too."""
    if isinstance(value, str):
        datetime.fromisoformat(value.upper().replace(":60", ":59"))
        return "T" in value.upper()
    return True


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuses an object with a name given twice: names that a schema lists never are."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError(f"a name is given twice: {[name for name, _ in pairs]}")
    return found


def no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def fault(answer: str, schema: Schema) -> str | None:
    """Why an answer does not follow a schema; None when it does."""
    try:
        # A name that only a pattern allows may come twice; readers of JSON take the last one.
        reader = dict if "patternProperties" in schema else once
        value = json.loads(answer, object_pairs_hook=reader, parse_constant=no_constant)
        jsonschema.validate(value, schema, format_checker=FORMATS)
    except (ValueError, jsonschema.ValidationError) as error:
        return f"{answer!r}: {error}"
    return None


@dataclasses.dataclass
class Tally:
    """What became of the answers to one case."""

    valid: int = 0
    cut: int = 0
    """Ended by the limit of tokens: neither valid nor a fault."""
    faults: list[str] = dataclasses.field(default_factory=list)
    tokens: int = 0
    answers: Counter[str] = dataclasses.field(default_factory=Counter)

    def add(self, stream: oga.Stream[str], schema: Schema) -> None:
        """Judges a stream, read to its end here."""
        answer = "".join(stream)
        self.tokens += len(stream.token_ids)
        if stream.finish_reason is oga.FinishReason.MAX_GENERATED_TOKENS:
            self.cut += 1
            return
        self.answers[answer] += 1
        wrong = fault(answer, schema)
        if stream.finish_reason is not oga.FinishReason.EOS:
            wrong = f"ended {stream.finish_reason.name}: {answer!r}"
        if wrong is None:
            self.valid += 1
        else:
            self.faults.append(wrong)


def start(engine: oga.Engine, case: Case, seed: int, longest: int) -> oga.Stream[str]:
    """Asks a case's question."""
    question = [{"role": "user", "content": f"{case.question} Answer in JSON."}]
    distribution: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 0.0, "seed": seed}
    return engine.stream(question, guidance=("json_schema", case.schema), max_new_tokens=longest, **distribution)


def ask(engine: oga.Engine, each: int, longest: int, together: int) -> Iterator[tuple[Case, Tally]]:
    """Lets the model answer each case ``each`` times at temperature 1, ``together`` at once."""
    wanted = iter([(case, number) for case in CASES for number in range(each)])
    tallies = {case.name: Tally() for case in CASES}
    waiting = Counter({case.name: each for case in CASES})
    running: list[tuple[Case, oga.Stream[str]]] = []
    while True:
        for case, seed in itertools.islice(wanted, together - len(running)):
            running.append((case, start(engine, case, seed, longest)))
        if not running:
            return
        running[0][1].advance()
        done = [(case, stream) for case, stream in running if stream.done]
        running = [(case, stream) for case, stream in running if not stream.done]
        for case, stream in done:
            tallies[case.name].add(stream, case.schema)
            waiting[case.name] -= 1
            if waiting[case.name] == 0:
                yield case, tallies[case.name]
