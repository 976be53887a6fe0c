"""The commands and their options; each hands over to a module of its own name."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import oga
from oga.bench.choices import Arrivals, Endpoint
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
    BF16 = "bf16"
    FP16 = "fp16"
    INT8 = "int8"
    INT4 = "int4"

    @property
    def literal(self) -> Literal["fp32", "bf16", "fp16", "int8", "int4"]:
        """The name that the exporter takes."""
        name: Literal["fp32", "bf16", "fp16", "int8", "int4"] = self.value
        return name


class Cache(enum.StrEnum):
    """How the keys and values of a converted model are stored."""

    AUTO = "auto"
    FP32 = "fp32"
    BF16 = "bf16"
    FP16 = "fp16"

    @property
    def literal(self) -> Literal["auto", "fp32", "bf16", "fp16"]:
        """The name that the exporter takes."""
        name: Literal["auto", "fp32", "bf16", "fp16"] = self.value
        return name


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
def chat(
    model: ModelArgument,
    system: Annotated[str | None, typer.Option(help="The system message.")] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", "-n", min=1, help="The most tokens of one answer.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting of /set, for example temperature=0.7; repeatable."),
    ] = None,
    history: Annotated[
        bool, typer.Option("--history/--no-history", help="Keep what is typed for the next time, for its owner only.")
    ] = True,
    overlay: OverlayOption = None,
) -> None:
    """Talk with a model.

    A line that ends in a backslash goes on, three quotes open and end a text of several lines, and /help lists the
    commands. Ctrl-C ends an answer and keeps the conversation; Ctrl-D quits. Without a terminal every line of standard
    input is a message, and the answers alone go to standard output.
    """
    from oga.cli import chat as command

    given = [*(settings or []), *([] if max_tokens is None else [f"max_tokens={max_tokens}"])]
    command.chat(model, system, given, history, overlay)


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
    cache: Annotated[
        Cache, typer.Option(help="How keys and values are stored; auto: in bf16, unless the weights are fp32.")
    ] = Cache.AUTO,
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
        "cache": cache.literal,
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
def doctor(
    model: Annotated[str | None, typer.Argument(metavar="[MODEL]", help="Also look at this model.")] = None,
    overlay: OverlayOption = None,
    json_output: JsonOption = False,
) -> None:
    """Say what is installed and what the machine gives, and what to do about each problem.

    Ends with exit code 1 when something stops oga, or the model, from working. Fetches nothing.
    """
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
def bench(
    target: Annotated[
        str, typer.Argument(metavar="MODEL|URL", help="A model to load here, or a server with OpenAI's API.")
    ],
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-c", min=1, help="Closed loop: so many at a time [8].")
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", "-r", help="Open loop: so many per second, whatever has ended.")
    ] = None,
    arrivals: Annotated[Arrivals, typer.Option(help="How the moments of --rate are spread.")] = Arrivals.POISSON,
    requests: Annotated[
        int | None, typer.Option("--requests", "-n", min=1, help="How many are sent [64, or as --duration allows].")
    ] = None,
    duration: Annotated[float | None, typer.Option(help="For how many seconds requests are sent.")] = None,
    warmup: Annotated[int, typer.Option(min=0, help="Requests before those that count.")] = 4,
    prompt_tokens: Annotated[
        str,
        typer.Option(metavar="LENGTH", help="128, uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA, or several with commas."),
    ] = "128",
    output_tokens: Annotated[str, typer.Option(metavar="LENGTH", help="As for prompts.")] = "64",
    shared_prefix: Annotated[int, typer.Option(min=0, help="Tokens in front of every prompt, the same for all.")] = 0,
    ignore_eos: Annotated[
        bool, typer.Option("--ignore-eos/--respect-eos", help="Whether every output has its full length.")
    ] = True,
    seed: Annotated[int, typer.Option(help="The same seed asks the same at the same moments.")] = 0,
    timeout: Annotated[float, typer.Option(help="Seconds after which a request has failed.")] = 600.0,
    model: Annotated[str | None, typer.Option(help="Of a server: its model [the first it lists].")] = None,
    endpoint: Annotated[Endpoint, typer.Option(help="Of a server: how it is asked.")] = Endpoint.CHAT,
    api_key: Annotated[str | None, typer.Option(envvar="OPENAI_API_KEY", help="Of a server: its key.")] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Of a server: a folder whose tokenizer counts prompts [a word is a token].")
    ] = None,
    overlay: OverlayOption = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write everything that was measured; - prints it.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it, as SVG.")] = None,
) -> None:
    """Measure an engine in this process, or any server with OpenAI's API, with the same requests.

    Shows the time to the first token, between pieces of an answer and to its end, with percentiles, and the throughput.
    In an open loop times count from when a request was due.
    """
    from oga.cli import bench as command

    load = command.load_of(concurrency, rate, requests, duration, arrivals=arrivals, warmup=warmup)
    lengths = command.lengths_of(prompt_tokens, output_tokens)
    options = command.Options(
        load, *lengths, shared_prefix, seed, ignore_eos, timeout, overlay, model, endpoint, api_key, tokenizer
    )
    command.bench(target, options, json_file, plot)


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
