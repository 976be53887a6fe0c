"""Config: a folder's settings, adjustable as a whole or not at all."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import oga


@pytest.fixture
def folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """A copy whose files a test may damage."""
    return Path(shutil.copytree(tiny_folder, tmp_path / "model"))


def batch_size(config: oga.Config) -> int:
    with oga.Model(config) as model, oga.Engine(model) as engine:
        return engine.get_capabilities().configured_max_batch_size


def settings(size: int) -> dict[str, object]:
    return {"engine": {"dynamic_batching": {"num_blocks": 16, "max_batch_size": size}}}


@pytest.mark.parametrize("as_text", [False, True])
def test_an_overlay_is_what_the_engine_runs_with(tiny_folder: Path, as_text: bool) -> None:
    with oga.Config(tiny_folder) as config:
        config.overlay(json.dumps(settings(3)) if as_text else settings(3))
        assert batch_size(config) == 3
        config.overlay({"engine": {"dynamic_batching": {"max_batch_size": 2}}})
        assert batch_size(config) == 2


@pytest.mark.parametrize(
    "overlay",
    ["", "[]", "{", "null", {"engine": {"dynamic_batching": {"max_batch_size": 5, "block_size": "four"}}}],
)
def test_a_refused_overlay_leaves_the_config_as_it_was(tiny_folder: Path, overlay: str | dict[str, object]) -> None:
    with oga.Config(tiny_folder) as config:
        config.overlay(settings(3))
        with pytest.raises(oga.InvalidArgumentError):
            config.overlay(overlay)
        assert batch_size(config) == 3


def test_an_unknown_engine_key_is_refused_with_the_one_that_was_meant(tiny_folder: Path) -> None:
    with (
        oga.Config(tiny_folder) as config,
        pytest.raises(oga.InvalidArgumentError, match=r"max_batchsize.*max_batch_size"),
    ):
        config.overlay({"engine": {"dynamic_batching": {"max_batchsize": 5}}})


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, object()])
def test_what_json_cannot_carry_is_refused(tiny_folder: Path, value: object) -> None:
    with oga.Config(tiny_folder) as config, pytest.raises(oga.InvalidArgumentError, match="settings"):
        config.overlay({"search": {"temperature": value}})


@pytest.mark.parametrize("wrong", [5, None, ["{}"]])
def test_an_overlay_is_text_or_a_mapping(tiny_folder: Path, wrong: object) -> None:
    with oga.Config(tiny_folder) as config, pytest.raises(TypeError):
        config.overlay(wrong)  # type: ignore[arg-type]


def test_providers(tiny_folder: Path) -> None:
    with oga.Config(tiny_folder) as config:
        config.clear_providers()
        config.append_provider("cpu")
        with pytest.raises(oga.UnsupportedError, match="quantum"):
            config.append_provider("quantum")
        with oga.Model(config) as model:
            assert model.device_type == "CPU"


def test_a_missing_folder_is_a_file_not_found_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        oga.Config(tmp_path / "absent")
    assert str(tmp_path / "absent") in str(caught.value)
    assert isinstance(caught.value, oga.NotFoundError)


def test_a_missing_key_is_named(folder: Path) -> None:
    path = folder / "genai_config.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["model"]["vocab_size"]
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(oga.OgaError, match=r"vocab_size"), oga.Config(folder) as config:
        oga.Model(config)


def test_a_config_that_is_no_json_is_named_with_the_file(folder: Path) -> None:
    (folder / "genai_config.json").write_text('{"model": ', encoding="utf-8")
    with pytest.raises(oga.InvalidArgumentError, match=r"genai_config\.json"):
        oga.Config(folder)


def test_a_model_outlives_its_config(tiny_folder: Path) -> None:
    config = oga.Config(tiny_folder)
    config.overlay(settings(2))
    model = oga.Model(config)
    config.close()
    with model, oga.Engine(model) as engine:
        assert engine.get_capabilities().configured_max_batch_size == 2


def test_a_closed_config_says_so(tiny_folder: Path) -> None:
    config = oga.Config(tiny_folder)
    config.close()
    config.close()
    for use in (config.clear_providers, lambda: config.overlay("{}"), lambda: oga.Model(config)):
        with pytest.raises(oga.InvalidStateError, match="Config cannot be used: it is already closed"):
            use()
