"""Lets SmolLM2 answer in the form of twenty JSON schemas, and judges every answer with ``jsonschema``.

Exit status 1 when an answer that ended by itself does not follow its schema.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import oga
from oga import export

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "models"))

from guided_schemas import CASES, ask


def main() -> int:
    """Prints one line per schema, and the first answer that is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", help="a model folder (default: SmolLM2, fetched once)")
    parser.add_argument("--each", type=int, default=50, help="answers per schema")
    parser.add_argument("--longest", type=int, default=300, help="the most tokens of one answer")
    parser.add_argument("--together", type=int, default=32, help="answers at the same time")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    config = oga.Config(arguments.model or export.pull("smollm2", precision="int8"))
    config.overlay({"engine": {"dynamic_batching": {"max_batch_size": arguments.together}}})
    start = time.perf_counter()
    report: dict[str, dict[str, int]] = {}
    print(f"{'schema':<22}{'valid':>6}{'cut':>6}{'wrong':>6}{'tokens':>8}{'different':>11}")
    with oga.Model(config) as model, oga.Engine(model) as engine:
        for case, tally in ask(engine, arguments.each, arguments.longest, arguments.together):
            row = {"valid": tally.valid, "cut": tally.cut, "wrong": len(tally.faults), "tokens": tally.tokens}
            report[case.name] = row | {"different": len(tally.answers)}
            print(f"{case.name:<22}" + "".join(f"{count:>6}" for count in list(row.values())[:3]), end="")
            print(f"{tally.tokens:>8}{len(tally.answers):>11}", flush=True)
            for wrong in tally.faults[:1]:
                print(f"  {wrong}")
    total = {name: sum(row[name] for row in report.values()) for name in ("valid", "cut", "wrong", "tokens")}
    seconds = time.perf_counter() - start
    print(
        f"{len(CASES)} schemas, {len(CASES) * arguments.each} answers: {total['valid']} valid, {total['cut']} cut by "
        f"the limit of {arguments.longest} tokens, {total['wrong']} wrong; {total['tokens']} tokens in {seconds:.0f} s"
    )
    if arguments.json:
        arguments.json.write_text(json.dumps({"schemas": report, "total": total}, indent=2) + "\n", encoding="utf-8")
    return 1 if total["wrong"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
