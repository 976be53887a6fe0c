"""Sphinx configuration. `make docs` builds this folder; every warning is an error."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs" / "_extensions"))

project = "oga"
author = "the oga authors"
copyright = "the oga authors"
release = re.search(r"project\(oga VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]
version = release

extensions = [
    "hawkmoth",
    "myst_parser",
    "oga_docs",
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
