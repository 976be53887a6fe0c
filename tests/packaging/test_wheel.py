"""The wheel works where it is installed, for Python programs and for C and C++ hosts."""

from __future__ import annotations

import re
import subprocess
import zipfile
from pathlib import Path

from installation import ROOT, Installed, run

HOST = """\
#include <oga/oga.h>
#include <stdio.h>

int main(void) {
  OgaModel* model = NULL;
  OgaResult* result = OgaCreateModel("no/such/folder", &model);
  printf("%u %u\\n", (unsigned)OgaGetApiVersion(), (unsigned)OgaResultGetCode(result));
  OgaDestroyResult(result);
  OgaDestroyModel(model);
  return 0;
}
"""
HOST_PRINTS = "1 3"  # API 0.1, OgaStatusCode_NotFound


def project_version() -> str:
    found = re.search(r"project\(oga VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert found
    return found[1]


def test_one_wheel_serves_every_python(wheel: Path) -> None:
    assert re.fullmatch(rf"oga-{re.escape(project_version())}-py3-none-\w+\.whl", wheel.name)


def test_the_wheel_carries_the_library_headers_and_build_files(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    headers = {f"oga/include/oga/{path.name}" for path in (ROOT / "include" / "oga").iterdir()}
    wanted = headers | {
        "oga/_native/lib/liboga.so",
        "oga/include/ort_genai_c.h",
        "oga/lib/cmake/oga/oga-config.cmake",
        "oga/lib/pkgconfig/oga.pc",
        "oga/py.typed",
        "oga/server/static/chat.css",
        "oga/server/static/chat.js",
        "oga/server/static/index.html",
    }
    assert wanted - names == set()
    assert [name for name in names if not name.startswith(("oga/", "oga-"))] == []


def test_the_package_imports_and_knows_its_version(installed: Installed) -> None:
    printed = installed.py("import importlib.metadata as m, oga; print(oga.__version__, m.version('oga'))")
    assert printed == f"{project_version()} {project_version()}"


def test_the_package_finds_its_library_and_the_installed_runtime(installed: Installed) -> None:
    printed = installed.py("import oga; print(oga.get_api_version()); print(oga.get_ort_version())")
    version, runtime = printed.splitlines()
    assert version == "(0, 1)"
    assert str(installed.package.parent / "onnxruntime") in runtime


def test_get_include_names_the_headers(installed: Installed) -> None:
    assert installed.py("import oga; print(oga.get_include())") == str(installed.package / "include")


def test_the_command_without_its_packages_says_what_to_install(installed: Installed) -> None:
    command = installed.python.parent / "oga"
    done = subprocess.run([command, "run"], cwd=installed.workplace, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install 'oga[cli]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_c_host_builds_with_pkg_config_alone(installed: Installed) -> None:
    place = installed.workplace
    (place / "host.c").write_text(HOST, encoding="utf-8")
    search = {"PKG_CONFIG_PATH": str(installed.package / "lib" / "pkgconfig")}
    strict = "-std=c99 -Wall -Wextra -Wstrict-prototypes -Werror"
    run(["sh", "-c", f'eval cc {strict} host.c "$(pkg-config --cflags --libs oga)" -o host'], place, **search)
    assert run([place / "host"], place) == HOST_PRINTS
    assert run(["pkg-config", "--modversion", "oga"], place, **search) == project_version()


def test_a_cmake_project_finds_the_package(installed: Installed) -> None:
    place = installed.workplace / "cmake project"
    place.mkdir()
    (place / "main.cpp").write_text(HOST, encoding="utf-8")
    (place / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.22)\n"
        "project(host LANGUAGES CXX)\n"
        "find_package(oga 0.1 CONFIG REQUIRED)\n"
        "add_executable(host main.cpp)\n"
        "target_link_libraries(host PRIVATE oga::oga)\n",
        encoding="utf-8",
    )
    run(["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={installed.package}"], place)
    run(["cmake", "--build", "build"], place)
    assert run([place / "build" / "host"], place) == HOST_PRINTS
