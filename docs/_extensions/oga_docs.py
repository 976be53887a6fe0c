"""What these pages need beyond Sphinx: links from bare names, and what the commands and the server say themselves."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

import oga

ROOT = Path(__file__).resolve().parents[2]
C_FUNCTIONS = {line.split()[0] for line in (ROOT / "include" / "oga" / "symbols.txt").read_text().splitlines()}


def link_c_functions(_app: Any, lines: list[str], *_: Any, **__: Any) -> None:
    """Turns the bare names of C functions in header comments into links."""

    def link(match: re.Match[str]) -> str:
        return f":c:func:`{match[0]}`" if match[0] in C_FUNCTIONS else match[0]

    lines[:] = [re.sub(r"(?<![`\w])Oga\w+", link, line) for line in lines]


def resolve_public_name(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Resolves ``oga.Engine`` to ``oga.engine.Engine``: docstrings use the names that programs use."""
    package, _, name = node.get("reftarget", "").partition(".")
    if node.get("refdomain") != "py" or package != "oga" or not name:
        return None
    head, dot, rest = name.partition(".")
    module = getattr(getattr(oga, head, None), "__module__", None)
    target = f"{module}.{head}{dot}{rest}"
    domain = env.get_domain("py")
    if target not in domain.objects:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, content)


class CommandHelp(Directive):
    """``.. oga-help:: run`` shows what ``oga run --help`` prints."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Runs the command in a plain terminal of 100 columns."""
        words = [*self.arguments, "--help"]
        env = {**os.environ, "COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "TERM": "dumb"}
        command = [sys.executable, "-m", "oga", *words]
        text = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
        shown = f"$ oga {' '.join(words)}\n{text.rstrip()}"
        return [nodes.literal_block(shown, shown, language="text")]


class OpenApi(Directive):
    """``.. oga-openapi::`` lists the operations of the server and puts its OpenAPI document beside the pages."""

    def run(self) -> list[nodes.Node]:
        """Writes ``openapi.json`` at the root of the output."""
        from oga.server import ServerSettings, create_app

        document = create_app(ServerSettings(models=[])).openapi()
        environment = self.state.document.settings.env
        (Path(environment.app.outdir) / "openapi.json").write_text(json.dumps(document, indent=1), encoding="utf-8")
        up = "../" * environment.docname.count("/")
        link = nodes.reference("", "openapi.json", refuri=f"{up}openapi.json")
        rows = [
            f"{method.upper():<7}{path:<38}{operation.get('summary', '')}"
            for path, operations in document["paths"].items()
            for method, operation in operations.items()
        ]
        shown = "\n".join(rows)
        paragraph = nodes.paragraph("", "", nodes.Text("The document of this version: "), link, nodes.Text("."))
        return [paragraph, nodes.literal_block(shown, shown, language="text")]


def setup(app: Any) -> dict[str, bool]:
    """Connects the link rules and the directive."""
    app.connect("hawkmoth-process-docstring", link_c_functions)
    app.connect("missing-reference", resolve_public_name)
    app.add_directive("oga-help", CommandHelp)
    app.add_directive("oga-openapi", OpenApi)
    return {"parallel_read_safe": True}
