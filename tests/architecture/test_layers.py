"""native/LAYERS holds: a folder includes only itself and folders below it."""

from __future__ import annotations

import re
from pathlib import Path

from planted import Plant, assert_none

INCLUDE = re.compile(r'^\s*#\s*include\s+([<"])([^>"]+)[>"]', re.MULTILINE)
# Headers of one operating system. What they are for is asked of base/platform_*, so that a port is a small folder.
PLATFORM = re.compile(r"(?:sys/.*|linux/.*|unistd|dlfcn|fcntl|pthread|sched|signal|poll|semaphore)\.h")
JSON_HEADER = "native/config/json_library.h"
LAYERS = "capi\nengine\ncache search\nbase\n"
FOLDERS = {f"native/{folder}/{folder}.h": "\n" for folder in LAYERS.split()}


def ranks(root: Path) -> dict[str, int]:
    """Reads native/LAYERS: folder to line number, the top line first."""
    lines = (root / "native" / "LAYERS").read_text(encoding="utf-8").splitlines()
    rules = [line.split() for line in lines if line.strip() and not line.startswith("#")]
    return {folder: rank for rank, folders in enumerate(rules) for folder in folders}


def violations(root: Path) -> list[str]:
    """Returns one sentence for each include or folder that breaks the rules."""
    rank = ranks(root)
    native = root / "native"
    found = [
        f"native/{folder.name}/ is not in native/LAYERS: add it on the line where it belongs"
        for folder in sorted(native.iterdir())
        if folder.is_dir() and folder.name not in rank
    ]
    found += [
        f"native/LAYERS lists {folder}/, which is not a folder of native/: take it out, or add what belongs there"
        for folder in rank
        if not (native / folder).is_dir()
    ]
    for path in sorted([*native.rglob("*.h"), *native.rglob("*.cpp")]):
        folder = path.relative_to(native).parts[0]
        for _, target in INCLUDE.findall(path.read_text(encoding="utf-8")):
            found += include_violations(rank, f"native/{path.relative_to(native)}", folder, target, native)
    return found


def include_violations(rank: dict[str, int], name: str, folder: str, target: str, native: Path) -> list[str]:
    """Returns what is wrong with one include of the file ``name`` in ``folder``, if anything."""
    top = target.split("/")[0]
    if top in {"oga", "ort_genai_c.h"}:
        allowed = folder == "capi"
        return [] if allowed else [f"{name} includes {target}: only native/capi knows the public headers"]
    if target.startswith("nlohmann/") and name != JSON_HEADER:
        return [f"{name} includes <{target}>: include config/json_library.h, which sets the library up for all"]
    if folder != "device" and re.match("device/.*/", target):
        return [f"{name} includes {target}: use device/device.h, behind which the kinds of devices are private"]
    if "/" not in target or PLATFORM.fullmatch(target):
        if PLATFORM.fullmatch(target) and not name.startswith("native/base/platform_"):
            return [f"{name} includes <{target}>: ask a function of native/base/platform_* instead, or add one there"]
        beside = (native / folder / target).is_file()
        return [f'{name} includes {target}: write it relative to native/, "{folder}/{target}"'] if beside else []
    if top not in rank or folder not in rank or top == folder or rank[top] > rank[folder]:
        return []
    direction = "beside" if rank[top] == rank[folder] else "above"
    return [
        f"{name} includes {target}, but native/LAYERS puts {top}/ {direction} {folder}/: "
        f"move what is shared to a folder below both, or pass it in as a plain value or an interface of {folder}/"
    ]


def test_no_folder_includes_upward_or_sideways(root: Path) -> None:
    assert_none(violations(root))


def test_an_upward_include_is_caught(plant: Plant) -> None:
    tree = plant({"native/LAYERS": LAYERS, **FOLDERS, "native/base/error.h": '#include "engine/engine.h"\n'})
    assert violations(tree) == [
        "native/base/error.h includes engine/engine.h, but native/LAYERS puts engine/ above base/: "
        "move what is shared to a folder below both, or pass it in as a plain value or an interface of base/"
    ]


def test_a_sideways_include_is_caught(plant: Plant) -> None:
    tree = plant({"native/LAYERS": LAYERS, **FOLDERS, "native/cache/pool.cpp": '#include "search/sampler.h"\n'})
    assert "puts search/ beside cache/" in violations(tree)[0]


def test_an_unlisted_folder_is_caught(plant: Plant) -> None:
    tree = plant({"native/LAYERS": LAYERS, **FOLDERS, "native/util/strings.h": "\n"})
    assert violations(tree) == ["native/util/ is not in native/LAYERS: add it on the line where it belongs"]


def test_a_listed_folder_that_does_not_exist_is_caught(plant: Plant) -> None:
    tree = plant({"native/LAYERS": f"{LAYERS}util\n", **FOLDERS})
    assert violations(tree) == [
        "native/LAYERS lists util/, which is not a folder of native/: take it out, or add what belongs there"
    ]


def test_a_public_header_below_the_boundary_is_caught(plant: Plant) -> None:
    tree = plant({"native/LAYERS": LAYERS, **FOLDERS, "native/engine/engine.h": '#include "oga/engine.h"\n'})
    assert "only native/capi knows the public headers" in violations(tree)[0]


def test_an_include_that_is_not_relative_to_native_is_caught(plant: Plant) -> None:
    tree = plant({"native/LAYERS": LAYERS, **FOLDERS, "native/base/a.h": "\n", "native/base/b.h": '#include "a.h"\n'})
    assert '"base/a.h"' in violations(tree)[0]


def test_a_call_of_the_operating_system_outside_of_its_place_is_caught(plant: Plant) -> None:
    text = "#include <sys/mman.h>\n"
    tree = {f"native/base/{name}.cpp": text for name in ("platform_memory", "pages")}
    found = violations(plant({"native/LAYERS": LAYERS, **FOLDERS, **tree}))
    assert found == [
        "native/base/pages.cpp includes <sys/mman.h>: "
        "ask a function of native/base/platform_* instead, or add one there"
    ]


def test_a_look_behind_the_interface_of_devices_is_caught(plant: Plant) -> None:
    rows = {"native/device/rows.cpp": '#include "device/cpu/cpu.h"\n', "native/device/cpu/cpu.h": "\n"}
    tree = {"native/LAYERS": LAYERS + "device\n", **FOLDERS, **rows}
    assert violations(plant(tree)) == []
    engine = {"native/engine/engine.h": '#include "device/cpu/cpu.h"\n'}
    assert "use device/device.h" in violations(plant({**tree, **engine}))[0]


def test_a_second_way_to_the_json_library_is_caught(plant: Plant) -> None:
    tree = plant({"native/LAYERS": LAYERS, **FOLDERS, "native/base/a.h": "#include <nlohmann/json.hpp>\n"})
    assert "include config/json_library.h" in violations(tree)[0]


def test_downward_and_own_includes_are_allowed(plant: Plant) -> None:
    text = '#include <vector>\n#include "engine/step.h"\n#include "cache/pool.h"\n#include "base/error.h"\n'
    assert violations(plant({"native/LAYERS": LAYERS, **FOLDERS, "native/engine/engine.cpp": text})) == []
