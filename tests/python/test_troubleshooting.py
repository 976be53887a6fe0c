"""The troubleshooting page knows every error code, and quotes messages that exist."""

from __future__ import annotations

import re
from pathlib import Path

import oga

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "troubleshooting.md").read_text(encoding="utf-8")


def camel_case(name: str) -> str:
    """``OUT_OF_MEMORY`` as the C API writes it."""
    return "".join(part.capitalize() for part in name.split("_"))


def test_every_status_code_has_a_section_and_every_event_code_a_line() -> None:
    sections = set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE))
    assert sections == {camel_case(code.name) for code in oga.StatusCode if code is not oga.StatusCode.OK}
    rows = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert rows == {camel_case(code.name) for code in oga.EngineErrorCode if code is not oga.EngineErrorCode.NONE}


def test_what_is_quoted_is_said_by_the_program() -> None:
    quoted = re.findall(r"^> (.+)$", PAGE, re.MULTILINE)
    assert len(quoted) > 20
    sources = [*(ROOT / "native").rglob("*.cpp"), *(ROOT / "native").rglob("*.h"), *(ROOT / "oga").rglob("*.py")]
    # Literals that the compiler joins are one text.
    said = "\n".join(re.sub(r'"\s*\n\s*f?"', "", path.read_text(encoding="utf-8")) for path in sources)
    assert [quote for quote in quoted if quote not in said] == []


def test_settings_commands_and_codes_that_are_named_exist() -> None:
    names = set(re.findall(r"`(OGA_[A-Z_]+)", PAGE))
    sources = [*(ROOT / "native").rglob("*.cpp"), *(ROOT / "oga").rglob("*.py")]
    said = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    assert {name for name in names if name not in said} == set()
    for code in re.findall(r"code\s+`([a-z_]+)`", PAGE):
        assert f'"{code}"' in said
