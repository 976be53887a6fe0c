"""Converts a model in two precisions and compares them: convert_a_model.py SOURCE DESTINATION [PROMPT]."""

import sys
from pathlib import Path

import oga
from oga import export


def main(source: str, destination: str, prompt: str = "The sea is") -> None:
    """Writes DESTINATION/fp32 and DESTINATION/int8."""
    for precision in ("fp32", "int8"):
        folder = Path(destination, precision)
        report = export.convert(Path(source), folder, precision=precision, force=True)
        print(f"{precision}: {report.parameters:,} parameters of a {report.family}, {report.bytes:,} bytes")
        for note in report.notes:
            print(f"  {note}")
        with oga.Model(folder) as model, oga.Engine(model) as engine:
            print("  " + "".join(engine.stream(prompt, max_new_tokens=16)))


if __name__ == "__main__":
    main(*sys.argv[1:])
