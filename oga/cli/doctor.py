"""``oga doctor``: what is installed, what the machine gives, whether a model folder is sound, and what to do."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

import typer

from oga.cli.checks import OK, PROBLEM, Finding, check_installation, check_machine
from oga.cli.failures import FAILED
from oga.cli.model_checks import check_model

COLOURS = {OK: typer.colors.GREEN, PROBLEM: typer.colors.RED}


def doctor(model: str | None, overlay: str | None, json_output: bool) -> None:
    """Prints what was found; exits with 1 when something stops oga, or the model, from working."""
    findings = [*check_installation(), *check_machine()]
    is_usable = not any(finding.level == PROBLEM for finding in findings)
    if model is not None:
        findings += check_model(model, overlay, is_usable)
    is_healthy = not any(finding.level == PROBLEM for finding in findings)
    if json_output:
        found = [finding.facts for finding in findings]
        print(json.dumps({"healthy": is_healthy, "findings": found}, ensure_ascii=False))
    else:
        _print(findings)
    if not is_healthy:
        raise typer.Exit(FAILED)


def _print(findings: Iterable[Finding]) -> None:
    section = ""
    for finding in findings:
        if finding.section != section:
            print(f"{finding.section}:" if not section else f"\n{finding.section}:")
            section = finding.section
        level = f"{finding.level:8}"
        if sys.stdout.isatty():
            level = typer.style(level, fg=COLOURS.get(finding.level, typer.colors.YELLOW))
        print(f"  {level}{finding.name:24}{finding.value}")
        if finding.advice is not None:
            print(f"  {'':8}-> {finding.advice}")
