"""The digest: hashes of what 200 requests said when it was recorded, kept in ``digests/``, one file per precision.

An intended change of what is generated records it anew, with the library that is installed, for every arithmetic that
this machine can compute; another machine with the same library adds its own::

    python tests/conformance/digest_record.py --record [PRECISION ...]
    python tests/conformance/digest_record.py --add [PRECISION ...]

A file holds, per key (``digest_key``), the name of a digest; per digest, a hash of the tokens and one of the
log-probabilities for each group (``Plan.group``) and the beginnings of both hashes for each request; and the tokens of
greedy requests that are likely enough to be the same in any arithmetic.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from digest_engine import Answer, answers_of, loaded, logprob_hash, token_hash
from digest_key import key_of
from digest_requests import Plan, draw_plans, hash_of

import oga
from oga import export
from oga.export.precision import Precision

FOLDER = Path(__file__).resolve().parent / "digests"
PRECISIONS: tuple[Precision, ...] = ("fp32", "int8", "int4")
GROUPS = ("rest", "forced_rules")
# By how much the log-probability of the best token must exceed the second for its choice to be the same in any
# arithmetic. Between the instruction sets of x86 that difference varies by 0.00002 in fp32, by 0.2 in the others.
CLEAR = {"fp32": 0.05, "int8": 0.5, "int4": 0.5}
VARIANTS = ("portable", "avx2", "avx512", "avx512_bf16", "amx")

Recorded = dict[str, Any]


def plans_of(precision: Precision) -> list[Plan]:
    """The requests, in the tokens of the model."""
    with loaded(export.pull("smollm2", precision=precision), 0) as model:
        return draw_plans(model.tokenizer, model.chat_template)


def read(precision: Precision) -> Recorded:
    """The recorded file."""
    found: Recorded = json.loads((FOLDER / f"{precision}.json").read_text())
    return found | {"clear": {index: json.loads(tokens) for index, tokens in found["clear"].items()}}


def write(precision: Precision, value: Recorded) -> None:
    """Writes the file, with a line for each request."""
    FOLDER.mkdir(exist_ok=True)
    clear = {index: json.dumps(tokens) for index, tokens in value["clear"].items()}
    (FOLDER / f"{precision}.json").write_text(json.dumps(value | {"clear": clear}, indent=1) + "\n")


def each_of(answers: dict[int, Answer]) -> dict[str, str]:
    """Two short hashes per request: of its tokens, and of its log-probabilities."""
    return {str(index): f"{token_hash(said)} {logprob_hash(said)}" for index, said in sorted(answers.items())}


def digest_of(each: dict[str, str], plans: list[Plan]) -> Recorded:
    """The digest of these requests: a hash of the tokens and one of the log-probabilities of each group, and each."""
    digest: Recorded = {}
    for group in GROUPS:
        members = [each[str(plan.index)].split(" ") for plan in plans if plan.group == group]
        kinds = dict(zip(("tokens", "logprobs"), zip(*members, strict=True), strict=True))
        digest[group] = {kind: hashlib.sha256(" ".join(of_all).encode()).hexdigest() for kind, of_all in kinds.items()}
    return digest | {"each": each}


def clear_tokens(answers: dict[int, Answer], precision: str) -> dict[str, list[int]]:
    """The beginnings of the first turns that are likely to be the same in any arithmetic."""
    clear = {str(index): said[0].clear_tokens(CLEAR[precision]) for index, said in sorted(answers.items())}
    return {index: tokens for index, tokens in clear.items() if tokens}


def differences(found: Recorded, recorded: Recorded, group: str, plans: list[Plan]) -> list[str]:
    """One text for each request of the group that said something else, with its options; none when the hashes agree."""
    texts = []
    for plan in plans:
        if plan.group != group:
            continue
        before, now = (digest["each"][str(plan.index)].split(" ") for digest in (recorded, found))
        kinds = [
            kind for kind, one, other in zip(("tokens", "log-probabilities"), before, now, strict=True) if one != other
        ]
        if kinds:
            texts.append(f"other {' and '.join(kinds)} of {plan}")
    assert bool(texts) == (found[group] != recorded[group])
    return texts


def versions() -> dict[str, str]:
    """What else the answers depend on."""
    runtime = oga.get_ort_version().split(" ", 1)[0]
    return {"onnxruntime": runtime, "llguidance": oga.get_llguidance_version().split(" ", 1)[0]}


def circumstances(precision: Precision, recorded: Recorded) -> dict[str, str]:
    """What is not as it was when the digest was recorded, and may be the reason for a difference."""
    weights = weights_of(precision)
    now = versions() | {"weights": weights}
    before = recorded["versions"] | {"weights": recorded["weights"]}
    return {name: f"{before[name]} then, {value} now" for name, value in now.items() if before[name] != value}


def weights_of(precision: Precision) -> str:
    """A hash of the converted weights."""
    with (export.pull("smollm2", precision=precision) / "model.onnx.data").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def answer(precision: Precision) -> None:
    """Prints what is recorded of this process."""
    answers = answers_of(export.pull("smollm2", precision=precision))
    found = {"key": key_of(precision), "each": each_of(answers), "clear": clear_tokens(answers, precision)}
    print(json.dumps(found))


def answers_by_variant(precision: Precision) -> dict[str, Recorded]:
    """What ``answer`` prints on each instruction set of this machine."""
    known = VARIANTS.index(oga.get_cpu_isa()) if oga.get_cpu_isa() in VARIANTS else 0
    found = {}
    for variant in VARIANTS[: known + 1]:
        command = [sys.executable, __file__, "--answer", precision]
        done = subprocess.run(command, env=os.environ | {"OGA_CPU_ISA": variant}, stdout=subprocess.PIPE, check=True)
        found[variant] = json.loads(done.stdout)
    return found


def common_beginnings(one: dict[str, list[int]], other: dict[str, list[int]]) -> dict[str, list[int]]:
    """Of the tokens of each request, those in which both agree from the first on."""
    common = {}
    for index in one.keys() & other.keys():
        pairs = list(zip(one[index], other[index], strict=False))
        agreed = next((place for place, (left, right) in enumerate(pairs) if left != right), len(pairs))
        common[index] = one[index][:agreed]
    return {index: common[index] for index in sorted(common, key=int) if common[index]}


def record(precision: Precision, add: bool) -> None:
    """Writes the file of a precision, or adds to it what this machine computes."""
    plans = plans_of(precision)
    head: Recorded = {"requests": hash_of(plans), "versions": versions(), "weights": weights_of(precision)}
    kept: Recorded = read(precision) if add else head | {"keys": {}, "clear": None, "digests": {}}
    if kept["requests"] != head["requests"]:
        raise SystemExit(f"{precision}: the requests are others than those recorded; --record them.")
    for variant, found in answers_by_variant(precision).items():
        digest = digest_of(found["each"], plans)
        name = hashlib.sha256(json.dumps(digest).encode()).hexdigest()[:8]
        if kept["keys"].setdefault(found["key"], name) != name:
            raise SystemExit(f"{precision}: {variant} says other things than recorded for {found['key']}.")
        kept["digests"][name] = digest
        kept["clear"] = common_beginnings(found["clear"], found["clear"] if kept["clear"] is None else kept["clear"])
        clear = sum(map(len, kept["clear"].values()))
        print(f"{precision} {variant}: {found['key']} is {name}; {clear} clear tokens", flush=True)
    write(precision, kept)


def main() -> None:
    """Records for the precisions named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    for name, purpose in (("record", "write the files anew"), ("add", "add the arithmetic of this machine")):
        what.add_argument(f"--{name}", nargs="*", choices=PRECISIONS, metavar="PRECISION", help=purpose)
    what.add_argument("--answer", choices=PRECISIONS, help="print what one process says; the other two use it")
    arguments = parser.parse_args()
    if arguments.answer:
        answer(arguments.answer)
        return
    for precision in arguments.record or arguments.add or PRECISIONS:
        record(precision, add=arguments.record is None)


if __name__ == "__main__":
    main()
