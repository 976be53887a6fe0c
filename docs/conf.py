"""Sphinx configuration. `make docs` builds this folder; every warning is an error."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import oga

ROOT = Path(__file__).resolve().parent.parent

project = "oga"
author = "the oga authors"
copyright = "the oga authors"
release = re.search(r"project\(oga VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
version = release

extensions = [
    "hawkmoth",
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build", "examples/**"]
nitpicky = False

html_theme = "furo"
html_title = f"oga {release}"
html_static_path = ["_static"]
html_css_files = ["oga.css"]

myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_class_signature = "separated"
autodoc_default_options = {"members": True, "show-inheritance": True, "undoc-members": True}
python_use_unqualified_type_names = True

hawkmoth_root = str(ROOT / "include")
# libclang comes without the compiler's own headers (stdbool.h and the like); the system's compiler has them.
compiler_include = subprocess.run(["cc", "-print-file-name=include"], capture_output=True, text=True, check=True).stdout
hawkmoth_autoconf = []
hawkmoth_clang = [f"-isystem{compiler_include.strip()}", f"-I{ROOT / 'include'}", "-std=c99"]

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


def setup(app: Any) -> None:
    """Connects the two link rules."""
    app.connect("hawkmoth-process-docstring", link_c_functions)
    app.connect("missing-reference", resolve_public_name)
