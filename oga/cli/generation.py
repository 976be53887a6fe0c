"""Options of commands that generate: one for each row of the table of sampling options, and the form of the answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from oga._native.sampling_table import DESCRIPTIONS, INTEGERS, NUMBERS, WARPERS
from oga.errors import InvalidArgumentError


def with_sampling_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command an option for each row of the table; it receives them as its dictionary ``sampling``."""

    @functools.wraps(command)
    def wrapper(**given: Any) -> None:
        command(sampling={name: given.pop(name) for name in names}, **given)

    own = inspect.signature(command, eval_str=True).parameters
    names = [name for name in DESCRIPTIONS if name != "do_sample"]  # --sample and --greedy are written by hand
    added = [_parameter(name) for name in names]
    kept = [parameter for parameter in own.values() if parameter.name != "sampling"]
    every = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*kept, *added)]
    wrapper.__signature__ = inspect.Signature(every)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in every}
    return wrapper


def _parameter(name: str) -> inspect.Parameter:
    kind: Any = int if name in INTEGERS else float if name in NUMBERS else bool
    text = DESCRIPTIONS[name] + (" Turns sampling on." if name in WARPERS else "")
    flag = "--" + name.replace("_", "-")
    annotation = Annotated[kind | None, typer.Option(flag, help=text)]  # a flag of its own, without --no-...
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def guidance(schema: str | None, json_object: bool, regex: str | None, grammar: Path | None) -> tuple[str, str] | None:
    """The form of the answer that the options ask for; at most one of them may."""
    wishes = {
        "--json-schema": schema is not None,
        "--json-object": json_object,
        "--regex": regex is not None,
        "--grammar": grammar is not None,
    }
    asked = [name for name, is_given in wishes.items() if is_given]
    if len(asked) > 1:
        raise typer.BadParameter(f"an answer has one form: give one of {' and '.join(asked)}")
    if schema is not None:
        return "json_schema", schema if schema.lstrip().startswith("{") else _read(Path(schema))
    if regex is not None:
        return "regex", regex
    if grammar is not None:
        return "lark_grammar", _read(grammar)
    return ("json_object", "") if json_object else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{file} is not UTF-8 text ({error}).") from None
