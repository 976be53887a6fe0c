"""Model: loaded from any path, shared by engines, clear about what is wrong with a folder."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from driving import generate

import oga

FOLDERS = ["plain", "a b", "modèle", "模型", "🙂", "#%&';$()", "x" * 120 + "/" + "y" * 120]


@pytest.mark.parametrize("name", FOLDERS, ids=ascii)
@pytest.mark.parametrize("kind", [str, os.fsencode, Path], ids=["str", "bytes", "Path"])
def test_a_folder_of_any_name_loads_with_its_tokenizer(
    tiny_folder: Path, tmp_path: Path, name: str, kind: Callable[[str], str | bytes | Path]
) -> None:
    folder = tmp_path / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(tiny_folder, target_is_directory=True)
    with oga.Model(kind(str(folder))) as model:
        assert model.type == "llama"
        assert model.path == folder
        assert model.tokenizer.decode(model.tokenizer.encode("the end")) == "the end"
        assert len(model.chat_template.encode([{"role": "user", "content": "x"}])) > 0


def test_a_real_folder_of_an_accented_name_loads_with_external_data(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "modèle 模型")
    with oga.Model(folder) as model, oga.Engine(model) as engine:
        assert len(generate(engine, [5, 6, 7], 3)) == 3


def test_a_folder_of_bytes_that_are_no_text_loads(tiny_folder: Path, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/m\xff\xfe"
    Path(os.fsdecode(name)).symlink_to(tiny_folder)
    for path in (name, os.fsdecode(name), Path(os.fsdecode(name))):
        with oga.Model(path) as model:
            assert os.fsencode(model.path) == name
            assert len(model.tokenizer.encode("hi")) > 0


@pytest.mark.parametrize("form", ["{0}/", "{0}/.", "./{1}", "../{2}/{1}", "{0}//"])
def test_relative_and_odd_forms_of_a_path_load(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.chdir(tiny_folder.parent)
    with oga.Model(form.format(tiny_folder, tiny_folder.name, tiny_folder.parent.name)) as model:
        assert model.type == "llama"


def test_a_path_that_cannot_be_one_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        oga.Model("a\0b")
    for wrong in (None, 5, ["x"]):
        with pytest.raises(TypeError):
            oga.Model(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("missing", ["genai_config.json", "model.onnx"])
def test_a_missing_file_is_named_with_its_whole_path(tiny_folder: Path, tmp_path: Path, missing: str) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "copy")
    (folder / missing).unlink()
    with pytest.raises(oga.OgaError) as caught:
        oga.Model(folder)
    assert str(folder / missing) in str(caught.value)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "absent": Path.unlink,
    "halved": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a dangling link": lambda path: (path.unlink(), path.symlink_to("nowhere")),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("name", ["genai_config.json", "model.onnx", "model.onnx.data"])
def test_a_damaged_file_is_named_with_its_whole_path(
    tiny_folder: Path, tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    damage(folder / name)
    with pytest.raises(oga.OgaError) as caught:
        oga.Model(folder)
    assert str(folder / name) in str(caught.value)
    assert caught.value.code is not oga.StatusCode.INTERNAL


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("name", ["tokenizer.json", "chat_template.jinja"])
def test_a_damaged_text_file_is_named_when_text_is_wanted_and_ids_still_work(
    tiny_folder: Path, tmp_path: Path, name: str, damage: Callable[[Path], object]
) -> None:
    folder = Path(shutil.copytree(tiny_folder, tmp_path / "copy"))
    (folder / "tokenizer_config.json").unlink()
    (folder / "chat_template.jinja").write_text("{% if true %}{{ messages[0].content }}{% endif %}", encoding="utf-8")
    damage(folder / name)
    with oga.Model(folder) as model, oga.Engine(model) as engine:
        assert len(list(engine.stream([5], max_new_tokens=2, min_new_tokens=2))) == 2
        with pytest.raises(oga.OgaError) as caught:
            engine.stream([{"role": "user", "content": "hi"}])
        assert str(folder / name) in str(caught.value)


def test_a_file_in_place_of_the_folder_is_refused(tiny_folder: Path) -> None:
    with pytest.raises(oga.OgaError, match=r"genai_config\.json"):
        oga.Model(tiny_folder / "genai_config.json")


def test_ids_work_without_any_text_files(tiny_folder: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(tiny_folder, tmp_path / "copy")
    for path in folder.glob("*token*"):
        path.unlink()
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    with oga.Model(folder) as model, oga.Engine(model) as engine:
        assert len(list(engine.stream([5, 6, 7], max_new_tokens=3))) == 3
        with pytest.raises(FileNotFoundError, match=r"tokenizer\.json"):
            engine.stream("text")
        assert len(list(engine.stream([5, 6, 7], max_new_tokens=3))) == 3


def test_what_a_model_is(model: oga.Model) -> None:
    assert (model.type, model.device_type) == ("llama", "CPU")


def test_engines_keep_a_closed_model_alive_and_are_independent(tiny_folder: Path) -> None:
    model = oga.Model(tiny_folder)
    first, second = oga.Engine(model), oga.Engine(model)
    alone = generate(first, [3, 4, 5], 6)
    model.close()
    assert generate(second, [3, 4, 5], 6) == alone
    first.close()
    assert generate(second, [3, 4, 5], 6) == alone
    second.close()


def test_a_closed_model_says_so(tiny_folder: Path) -> None:
    model = oga.Model(tiny_folder)
    model.close()
    model.close()
    assert model.closed
    for use in (lambda: oga.Engine(model), lambda: model.type):
        with pytest.raises(oga.InvalidStateError, match="Model cannot be used: it is already closed"):
            use()


def test_other_threads_run_while_a_model_loads(tiny_folder: Path) -> None:
    """Without a switch interval the other thread runs only when loading lets go of the interpreter lock."""
    gate = threading.Lock()
    ran = threading.Event()
    gate.acquire()

    def wait() -> None:
        with gate:
            ran.set()

    thread = threading.Thread(target=wait)
    thread.start()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        gate.release()
        for _ in range(200):
            oga.Model(tiny_folder).close()
            if ran.is_set():
                break
        assert ran.is_set()
    finally:
        sys.setswitchinterval(interval)
        thread.join()
