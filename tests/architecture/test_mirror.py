"""Every source has its test where the mirror says: native/a/b.cpp is tested by tests/native/a/b_test.cpp."""

from __future__ import annotations

import re
from pathlib import Path

from planted import Plant, assert_none

FOLDERS = ("base", "config", "device", "kernels", "memory", "onnx", "operators", "text")
# One source compiled once for each of these has one test, which runs all that the machine has.
INSTRUCTION_SET = re.compile(r"_(?:portable|avx2|avx512|avx512bf16|amx)$")


def mirror(source: Path) -> Path:
    """The path of the test of ``source``, both relative to the repository."""
    return Path("tests") / source.with_name(f"{INSTRUCTION_SET.sub('', source.stem)}_test.cpp")


def violations(root: Path) -> list[str]:
    """Returns one sentence for each source without its test, and for each folder that is not there."""
    native = root / "native"
    found = [
        f"test_mirror.py names native/{folder}/, which is not a folder: name what it has become"
        for folder in FOLDERS
        if not (native / folder).is_dir()
    ]
    for path in sorted(native.rglob("*.cpp")):
        source = path.relative_to(root)
        if source.parts[1] in FOLDERS and not (root / mirror(source)).is_file():
            found.append(
                f"{source} has no test at {mirror(source)}: move the tests of it there, or write some of what its "
                "header promises"
            )
    return found


def tree(*files: str) -> dict[str, str]:
    """A tree in which every folder of the rule has a source with its test, and ``files`` besides."""
    pairs = [f"native/{folder}/a.cpp" for folder in FOLDERS] + [
        f"tests/native/{folder}/a_test.cpp" for folder in FOLDERS
    ]
    return dict.fromkeys([*pairs, *files], "\n")


def test_every_source_has_its_test(root: Path) -> None:
    assert_none(violations(root))


def test_a_source_without_its_test_is_caught(plant: Plant) -> None:
    files = tree("native/base/b.cpp", "tests/native/config/b_test.cpp", "tests/native/base/b.cpp")
    assert violations(plant(files)) == [
        "native/base/b.cpp has no test at tests/native/base/b_test.cpp: move the tests of it there, or write some of "
        "what its header promises"
    ]


def test_a_test_in_another_subfolder_is_no_mirror(plant: Plant) -> None:
    found = violations(plant(tree("native/operators/cpu/b.cpp", "tests/native/operators/b_test.cpp")))
    assert len(found) == 1
    assert "tests/native/operators/cpu/b_test.cpp" in found[0]


def test_variants_of_one_source_share_its_test(plant: Plant) -> None:
    variants = [f"native/kernels/b_{name}.cpp" for name in ("portable", "avx2", "avx512", "avx512bf16", "amx")]
    assert len(violations(plant(tree(*variants)))) == len(variants)
    assert violations(plant(tree(*variants, "tests/native/kernels/b_test.cpp"))) == []


def test_other_endings_are_no_variants(plant: Plant) -> None:
    found = violations(plant(tree("native/kernels/b_sse2.cpp", "tests/native/kernels/b_test.cpp")))
    assert "tests/native/kernels/b_sse2_test.cpp" in found[0]


def test_headers_and_folders_beside_the_rule_need_none(plant: Plant) -> None:
    assert violations(plant(tree("native/base/b.h", "native/capi/b.cpp"))) == []


def test_a_folder_that_is_gone_is_caught(plant: Plant) -> None:
    files = {name: text for name, text in tree().items() if not name.startswith("native/text/")}
    assert violations(plant(files)) == [
        "test_mirror.py names native/text/, which is not a folder: name what it has become"
    ]
