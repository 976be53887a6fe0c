"""The commands and their options; each hands over to a module of its own name."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import oga
from oga.cli.failures import reported
from oga.cli.generation import guidance, with_sampling_options

if TYPE_CHECKING:
    from oga.stream import Generation

app = typer.Typer(
    name="oga",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Runs language models exported to ONNX, many conversations at once.",
    epilog="Exit codes: 0 done, 1 something failed, 2 the command line is wrong, 130 interrupted.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


class Precision(enum.StrEnum):
    """How the weights of a converted model are stored."""

    FP32 = "fp32"
    INT8 = "int8"
    INT4 = "int4"

    @property
    def literal(self) -> Literal["fp32", "int8", "int4"]:
        """The name that the exporter takes."""
        names: dict[Precision, Literal["fp32", "int8", "int4"]] = {Precision.FP32: "fp32", Precision.INT8: "int8"}
        return names.get(self, "int4")


ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="A model folder, or a name that `oga pull` knows.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object for programs.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what is there.")]
OverlayOption = Annotated[
    str | None,
    typer.Option(
        metavar="JSON", help='Settings merged over genai_config.json, e.g. \'{"engine": {"dynamic_batching": {...}}}\'.'
    ),
]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"oga {oga.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options of the command itself."""


@app.command()
@reported
@with_sampling_options
def run(
    model: ModelArgument,
    prompts: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="Answered together; - reads one from stdin.")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="More prompts: one per line, or one JSON string per line in a .jsonl file."),
    ] = None,
    system: Annotated[str | None, typer.Option(help="A system message in front of every prompt.")] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Continue the text as it is, without the chat template.")] = False,
    max_tokens: Annotated[int, typer.Option("--max-tokens", "-n", min=1, help="The most tokens of one answer.")] = 256,
    min_tokens: Annotated[int | None, typer.Option(min=0, help="The fewest tokens of one answer.")] = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="End an answer before this text; may be given up to 16 times.")
    ] = None,
    json_schema: Annotated[
        str | None, typer.Option(metavar="JSON|FILE", help="Answers are JSON that this schema accepts.")
    ] = None,
    json_object: Annotated[bool, typer.Option("--json-object", help="Answers are JSON objects.")] = False,
    regex: Annotated[str | None, typer.Option(help="Answers match this regular expression as a whole.")] = None,
    grammar: Annotated[Path | None, typer.Option(help="Answers follow the Lark grammar in this file.")] = None,
    logprobs: Annotated[
        int | None,
        typer.Option(min=0, max=20, help="Show each token's log-probability and those of the N most likely ones."),
    ] = None,
    sample: Annotated[
        bool | None,
        typer.Option("--sample/--greedy", help="Draw tokens at random, or take the most likely [the model's default]."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes sampling reproducible.")] = None,
    overlay: OverlayOption = None,
    trace_file: Annotated[
        Path | None, typer.Option("--trace", help="Write a line per step to this file, for oga trace.")
    ] = None,
    json_output: JsonOption = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print the answers and nothing else.")] = False,
    *,
    sampling: Any,
) -> None:
    """Answer one or more prompts, all at the same time.

    Prompts come from the command line, from --file, or, when there is neither, from standard input as one prompt. On a
    terminal every answer grows in a panel of its own; otherwise answers are printed in the order of the prompts.
    """
    from oga.cli import run as command

    generation: Generation = {
        "max_new_tokens": max_tokens,
        "min_new_tokens": min_tokens,
        "do_sample": sample,
        "seed": seed,
        "stop_strings": stop,
        "guidance": guidance(json_schema, json_object, regex, grammar),
        "logprobs": logprobs,
    }
    generation.update(sampling)
    command.run(
        model,
        command.read_prompts(prompts or [], file),
        command.Style(system=system, raw=raw, json=json_output, quiet=quiet),
        generation,
        overlay,
        trace_file,
    )


@app.command()
@reported
def pull(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What to fetch: smollm2.")],
    precision: Annotated[Precision, typer.Option(help="How the weights are stored.")] = Precision.FP32,
    cache_dir: Annotated[Path | None, typer.Option(help="Where models are kept.")] = None,
    force: ForceOption = False,
    json_output: JsonOption = False,
) -> None:
    """Fetch a model once, convert it, and keep it for `oga run NAME`."""
    from oga.cli import pull as command

    command.pull(name, precision.literal, cache_dir, force, json_output)


@app.command()
@reported
def convert(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="A Hugging Face folder or a GGUF file.")],
    destination: Annotated[Path, typer.Argument(metavar="DST", help="The model folder to write.")],
    precision: Annotated[Precision, typer.Option(help="How the weights are stored.")] = Precision.FP32,
    head_precision: Annotated[
        Precision | None,
        typer.Option(help="How the embedding and the LM head are stored [as the rest, or as a GGUF file has them]."),
    ] = None,
    block_size: Annotated[
        int | None,
        typer.Option(help="Weights that share a scale in int8 and int4: 16, 32, 64, 128 or 256 [32, or the file's]."),
    ] = None,
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="No zero points in int4: a little smaller, less exact.")
    ] = False,
    context_length: Annotated[
        int | None, typer.Option(min=1, help="The longest sequence in tokens [what the model was trained for].")
    ] = None,
    force: ForceOption = False,
    json_output: JsonOption = False,
) -> None:
    """Make a model folder that oga runs."""
    from oga.cli import convert as command

    options = {
        "precision": precision.literal,
        "head_precision": head_precision.literal if head_precision else None,
        "block_size": block_size,
        "symmetric": symmetric,
        "context_length": context_length,
        "force": force,
    }
    command.convert(source, destination, options, json_output)


@app.command()
@reported
def info(model: ModelArgument, overlay: OverlayOption = None, json_output: JsonOption = False) -> None:
    """Load a model and say what it is, what it can take and what it runs on."""
    from oga.cli import info as command

    command.info(model, overlay, json_output)


@app.command()
@reported
def chat(
    model: ModelArgument,
    system: Annotated[str | None, typer.Option(help="What the model is told to be.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", "-n", min=1, help="The most tokens of an answer.")
    ] = None,
    temperature: Annotated[float | None, typer.Option(help="Turns sampling on; higher is more varied.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Turns sampling on, among the k most likely tokens.")] = None,
    top_p: Annotated[float | None, typer.Option(help="Turns sampling on, among the most likely up to p.")] = None,
    seed: Annotated[int | None, typer.Option(help="Makes sampling reproducible.")] = None,
    overlay: OverlayOption = None,
) -> None:
    """Talk with a model. /help lists what can be done besides; Ctrl-C ends an answer, Ctrl-D the program.

    When standard input is no terminal, each of its lines is a message or a command.
    """
    from oga.cli import chat as command

    given = {
        "max_new_tokens": max_tokens, "temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed
    }  # fmt: skip
    command.chat(model, system, {name: value for name, value in given.items() if value is not None}, overlay)


@app.command()
@reported
def bench(
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="A model, measured in this process, or the URL of a server.")
    ],
    requests: Annotated[int, typer.Option("--requests", "-n", min=1, help="How many.")] = 64,
    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, help="How many at a time.")] = 8,
    rate: Annotated[
        float | None, typer.Option(min=0.001, help="Arrivals per second at random moments [an answer makes room].")
    ] = None,
    prompt_words: Annotated[
        str, typer.Option(help="Words of a prompt: 64, a range 32:128, or a mix 16,512.")
    ] = "32:128",
    output_tokens: Annotated[str, typer.Option(help="Tokens of an answer, in the same form.")] = "64",
    shared_prefix: Annotated[int, typer.Option(min=0, help="Words that all prompts begin with.")] = 0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same load.")] = 0,
    model: Annotated[str | None, typer.Option(help="The model's name at the server.")] = None,
    key: Annotated[str | None, typer.Option(envvar="OGA_API_KEY", help="The server's API key.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Also draw the requests into this file, as SVG.")] = None,
    overlay: OverlayOption = None,
    json_output: JsonOption = False,
) -> None:
    """Put a load on a model or a server and say how it bears it.

    A server is asked by POST /v1/completions, as OpenAI's API has it, so that others are measured in the same way.
    """
    from oga.cli import bench as command
    from oga.cli.bench_load import Load

    load = Load(requests, concurrency, rate, prompt_words, output_tokens, shared_prefix, seed)
    command.bench(target, load, model=model, key=key, overlay=overlay, json_output=json_output, plot_file=plot)


@app.command()
@reported
def doctor(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Also load this model.")] = None,
    overlay: OverlayOption = None,
    json_output: JsonOption = False,
) -> None:
    """Say what is installed and what the machine offers, and what to do about each problem."""
    from oga.cli import doctor as command

    command.doctor(model, overlay, json_output)


@app.command()
@reported
def serve(
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL...", help="Model folders, names that `oga pull` knows, or NAME=FOLDER."),
    ],
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for everybody.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    api_key: Annotated[
        list[str] | None,
        typer.Option("--api-key", envvar="OGA_API_KEY", help="A key that opens the API; may be given several times."),
    ] = None,
    admin_key: Annotated[
        str | None, typer.Option(envvar="OGA_ADMIN_KEY", help="The key that loads and unloads models.")
    ] = None,
    max_waiting: Annotated[int, typer.Option(min=0, help="Answers that may wait; one more gets 429.")] = 256,
    max_body_mib: Annotated[int, typer.Option(min=1, max=1024, help="The largest request, in MiB.")] = 2,
    max_sessions: Annotated[int, typer.Option(min=0, help="Conversations that are kept in memory.")] = 256,
    lenient: Annotated[bool, typer.Option("--lenient", help="Log unknown fields instead of refusing them.")] = False,
    page: Annotated[bool, typer.Option("--page/--no-page", help="The chat page at /.")] = True,
    json_logs: Annotated[bool, typer.Option("--json-logs", help="Log one JSON object per request.")] = False,
    metrics_prefix: Annotated[str, typer.Option(help="The word before the colon in names of metrics.")] = "oga",
    drain_seconds: Annotated[float, typer.Option(min=0, help="How long open answers may go on at the end.")] = 30.0,
    share_port: Annotated[
        bool, typer.Option("--share-port", help="Let the next server listen before this one is told to stop.")
    ] = False,
    overlay: OverlayOption = None,
) -> None:
    """Serve models over HTTP, as OpenAI's API does, and a chat page at /.

    The name of a model is that of its folder. Ctrl-C, or SIGTERM, lets open answers end first.
    """
    from oga.cli import serve as command

    command.serve(
        models,
        host,
        port,
        share_port,
        overlay,
        {
            "api_keys": tuple(api_key or ()),
            "admin_key": admin_key,
            "max_waiting": max_waiting,
            "max_body_bytes": max_body_mib * 2**20,
            "max_sessions": max_sessions,
            "is_lenient": lenient,
            "has_page": page,
            "log_format": "json" if json_logs else "text",
            "metrics_prefix": metrics_prefix,
            "drain_seconds": drain_seconds,
        },
    )


@app.command()
@reported
def trace(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What Engine.set_trace_file wrote.")],
    plot: Annotated[Path | None, typer.Option(help="Also write the timeline to this file, as SVG.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Summarise and draw what an engine's steps did: who ran, who waited, where the time went."""
    from oga.cli import trace as command

    command.trace(file, plot, json_output)
