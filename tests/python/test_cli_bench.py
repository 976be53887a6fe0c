"""`oga bench`: what it asks for, what it measures, and what it says about failures."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import socket
import statistics
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from fake_server import Answer, Asked, fake_server
from typer.testing import CliRunner, Result

import oga
from oga.bench.choices import Arrivals
from oga.bench.samples import Sample, Summary
from oga.bench.workload import Lengths, Load, Questions
from oga.cli.app import app

FIRST, GAP = 0.08, 0.02


def invoke(*arguments: Any) -> Result:
    return CliRunner().invoke(app, ["bench", *map(str, arguments)], env={"OPENAI_API_KEY": ""})


def measure(*arguments: Any) -> dict[str, Any]:
    """The report for programs."""
    done = invoke(*arguments, "--json", "-")
    assert done.exit_code == 0, done.output
    report: dict[str, Any] = json.loads(done.stdout)
    return report


async def steady(asked: Asked, answer: Answer) -> None:
    await answer.tokens(asked, FIRST, GAP)


def test_known_delays_are_measured() -> None:
    with fake_server(steady) as server:
        report = measure(server.url, "-c", 4, "--requests", 12, "--output-tokens", 6, "--warmup", 2)
    latency = report["latency_seconds"]
    whole = FIRST + 5 * GAP
    assert FIRST <= latency["ttft"]["p50"] < 1.6 * FIRST
    assert 0.8 * GAP <= latency["inter_token"]["p50"] < 2 * GAP
    assert GAP <= latency["time_per_output_token"]["p50"] < 2 * GAP
    assert whole <= latency["end_to_end"]["p50"] < 1.6 * whole
    assert latency["inter_token"]["count"] == 12 * 5
    assert report["requests"] == {"completed": 12, "failed": 0, "errors": {}}
    assert report["tokens"] == {"prompt": 12 * 7, "output": 12 * 6}
    assert report["seconds"] == pytest.approx(3 * latency["end_to_end"]["mean"], rel=0.3)
    rates = report["throughput"]
    assert rates["output_tokens_per_second"] == pytest.approx(12 * 6 / report["seconds"])
    assert rates["total_tokens_per_second"] == pytest.approx(12 * 13 / report["seconds"])
    assert report["mean_concurrency"] == pytest.approx(4, rel=0.2)
    assert len(server.asked) == 14
    assert server.most_open == 4


def test_twice_as_many_at_a_time_are_twice_as_fast_where_nobody_waits() -> None:
    with fake_server(steady) as server:
        slow, fast = (
            measure(server.url, "-c", count, "--requests", 8, "--output-tokens", 3, "--warmup", 0) for count in (2, 4)
        )
        assert server.connections <= 2 + 4 + 2  # they are kept; each measurement asks for the models first
    ratio = fast["throughput"]["requests_per_second"] / slow["throughput"]["requests_per_second"]
    assert 1.5 < ratio < 2.5


def test_an_open_loop_sends_at_its_rate_and_counts_the_wait_for_a_slow_server() -> None:
    lock = asyncio.Lock()

    async def one_at_a_time(asked: Asked, answer: Answer) -> None:
        async with lock:
            await answer.tokens(asked, 0.1, 0)

    options = ("--rate", 20, "--arrivals", "constant", "--requests", 10, "--output-tokens", 1, "--warmup", 0)
    with fake_server(steady) as server:
        quick = measure(server.url, *options)
    with fake_server(one_at_a_time) as server:
        slow = measure(server.url, *options)
    starts = [sample["start"] for sample in quick["samples"]]
    assert starts == pytest.approx([number / 20 for number in range(10)])
    assert quick["seconds"] == pytest.approx(9 / 20 + FIRST, rel=0.4)
    assert quick["latency_seconds"]["ttft"]["max"] < 2 * FIRST
    waits = [sample["ttft"] for sample in slow["samples"]]
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]  # due after 0.45 s, answered after ten times 0.1 s
    assert slow["mean_concurrency"] > 2 * quick["mean_concurrency"]


def test_a_duration_ends_what_is_sent_and_every_answer_is_awaited() -> None:
    with fake_server(steady) as server:
        report = measure(server.url, "-c", 2, "--duration", 0.3, "--output-tokens", 2, "--warmup", 0)
    assert 4 <= report["requests"]["completed"] <= 8
    assert report["requests"]["completed"] == len(server.asked)
    assert max(sample["start"] for sample in report["samples"]) < 0.35


def test_what_is_asked_is_what_the_options_say() -> None:
    with fake_server(steady) as server:
        first = ("--requests", 3, "--prompt-tokens", 5, "--shared-prefix", 4, "--output-tokens", "uniform:2:4")
        report = measure(server.url, *first, "--api-key", "secret", "--warmup", 0, "-c", 1)
        measure(f"{server.url}/v1", *first, "--endpoint", "completions", "--model", "other", "--respect-eos",
                "--warmup", 0, "-c", 1)  # fmt: skip
    chats, completions = server.asked[:3], server.asked[3:]
    assert {asked.path for asked in chats} == {"/v1/chat/completions"}
    assert {asked.path for asked in completions} == {"/v1/completions"}
    assert all(asked.headers["authorization"] == "bearer secret" for asked in chats)
    assert all("authorization" not in asked.headers for asked in completions)
    assert all(asked.body["model"] == "the-model" and asked.body["ignore_eos"] is True for asked in chats)
    assert all(asked.body["model"] == "other" and "ignore_eos" not in asked.body for asked in completions)
    prompts = [asked.body["messages"][0]["content"] for asked in chats]
    assert [asked.body["prompt"] for asked in completions] == prompts  # the same seed asks the same
    assert len(set(prompts)) == 3
    assert len({" ".join(prompt.split()[:4]) for prompt in prompts}) == 1
    assert [len(prompt.split()) for prompt in prompts] == [9, 9, 9]
    assert [sample["output_tokens"] for sample in report["samples"]] == [asked.body["max_tokens"] for asked in chats]


def test_failures_are_counted_by_kind_and_the_rest_is_measured() -> None:
    async def moody(asked: Asked, answer: Answer) -> None:
        mood = asked.number % 6
        if mood == 0:
            await answer.whole(429, {"error": {"message": "too many\nrequests"}})
        elif mood == 1:
            await answer.begin()
            await answer.event({"choices": [{"delta": {"content": "x"}}]})
            answer.writer.close()
            raise EOFError
        elif mood == 2:
            await answer.begin()
            await answer.event({"error": {"message": "the engine broke"}})
            await answer.end()
        elif mood == 3:
            await answer.begin()
            await asyncio.sleep(30)
        elif mood == 4:
            await answer.begin()
            await answer.event({"choices": [{"delta": {"content": "x"}}]})
            answer.writer.write(b"0\r\n\r\n")
        else:
            await answer.tokens(asked, 0, 0, counts=False)

    with fake_server(moody) as server:
        options = ("-c", 1, "--requests", 12, "--output-tokens", 3, "--warmup", 0, "--timeout", 0.3)
        report = measure(server.url, *options)
        shown = invoke(server.url, *options).stdout
    assert report["requests"]["completed"] == 2
    assert {kind: entry["count"] for kind, entry in report["requests"]["errors"].items()} == {
        "status 429": 2,
        "connection": 2,
        "error in the stream": 2,
        "timeout": 2,
        "cut off": 2,
    }
    assert report["requests"]["errors"]["status 429"]["message"] == "too many requests"
    assert report["tokens"]["output"] == 6  # pieces are counted where the server does not count
    assert "2 x status 429: too many requests" in shown
    assert "2 x timeout: no end of the answer in 0.3 s" in shown


def test_no_answer_at_all_is_a_failure_with_its_reason() -> None:
    async def refuse(asked: Asked, answer: Answer) -> None:
        await answer.whole(400, {"error": {"message": "ignore_eos is not known"}})

    with fake_server(refuse) as server:
        done = invoke(server.url, "--requests", 2)
    assert done.exit_code == 1
    assert "2 x status 400: ignore_eos is not known" in done.stdout
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        done = invoke(f"http://127.0.0.1:{nobody.getsockname()[1]}")
    assert done.exit_code == 1
    assert "The server does not answer" in done.stderr


def test_an_engine_in_this_process_is_measured(tiny_folder: Path, tmp_path: Path) -> None:
    report = measure(
        tiny_folder, "-c", 4, "--requests", 12, "--prompt-tokens", 20, "--shared-prefix", 32, "--output-tokens", 10,
        "--overlay", json.dumps({"engine": {"dynamic_batching": {"block_size": 4, "num_blocks": 96}}}),
    )  # fmt: skip
    assert report["requests"] == {"completed": 12, "failed": 0, "errors": {}}
    assert report["tokens"] == {"prompt": 12 * 52, "output": 12 * 10}
    assert report["engine"]["rows_per_step"] > 2
    assert report["engine"]["prefix_tokens_saved"] >= 12 * 32
    assert report["latency_seconds"]["ttft"]["p50"] < report["latency_seconds"]["end_to_end"]["p50"]
    picture, numbers = tmp_path / "bench.svg", tmp_path / "bench.json"
    done = invoke(tiny_folder, "--requests", 5, "--output-tokens", 3, "--plot", picture, "--json", numbers)
    assert done.exit_code == 0
    for words in ("time to first token", "p99", "5 answered in", "output tokens/s", "rows per step"):
        assert words in done.stdout
    root = ElementTree.parse(picture).getroot()
    titles = {title.text for title in root.iter("{http://www.w3.org/2000/svg}title")}
    assert titles == {f"request {number}: 128 + 3 tokens" for number in range(1, 6)}
    assert json.loads(numbers.read_text())["requests"]["completed"] == 5


def test_a_request_that_the_engine_refuses_is_counted(tiny_folder: Path) -> None:
    done = invoke(tiny_folder, "--requests", 2, "--prompt-tokens", 500)
    assert done.exit_code == 1
    assert "2 x PromptTooLongError: " in done.stdout


def test_an_engine_that_fails_for_good_ends_the_measurement_with_the_cause(
    tiny_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from oga.turns import Turns

    def broken(turns: Turns) -> None:
        raise oga.EngineUnhealthyError("the cause of it")

    monkeypatch.setattr(Turns, "step", broken)
    done = invoke(tiny_folder, "--requests", 5)
    assert done.exit_code == 1
    assert done.stderr == "oga: error: the cause of it\n"


def test_prompts_have_exactly_the_tokens_that_were_drawn(tiny_folder: Path) -> None:
    with oga.Tokenizer(tiny_folder) as tokenizer:
        for text in (False, True):
            questions = Questions(
                Lengths.parse("uniform:5:9", ""), Lengths.parse("3", ""), 6, 1, tokenizer, None if text else 512
            )
            asked = [questions.next() for _ in range(20)]
            tokens = [each.tokens or tokenizer.encode(each.text or "", add_special_tokens=False) for each in asked]
            assert {len(each) for each in tokens} == set(range(11, 16))
            assert len({tuple(each[:6]) for each in tokens}) == 1


def test_lengths_and_arrivals_follow_their_distributions() -> None:
    dice = random.Random(3)
    assert {Lengths.parse("5", "").draw(dice) for _ in range(9)} == {5}
    assert {Lengths.parse("uniform:2:4", "").draw(dice) for _ in range(99)} == {2, 3, 4}
    mixed = Lengths.parse("7,uniform:2:3", "")
    assert str(mixed) == "7,uniform:2:3"
    drawn = [mixed.draw(dice) for _ in range(400)]
    assert set(drawn) == {2, 3, 7}
    assert 0.4 < drawn.count(7) / 400 < 0.6
    drawn = [Lengths.parse("lognormal:100:0.5", "").draw(dice) for _ in range(2000)]
    assert statistics.median(drawn) == pytest.approx(100, rel=0.1)
    assert statistics.mean(drawn) == pytest.approx(113, rel=0.1)
    for arrivals, deviation in ((Arrivals.CONSTANT, 0.0), (Arrivals.POISSON, 0.25)):
        moments = list(itertools.islice(Load(None, 4.0, arrivals, None, None, 0).moments(dice), 2000))
        gaps = [after - before for before, after in itertools.pairwise(moments)]
        assert statistics.mean(gaps) == pytest.approx(0.25, rel=0.1)
        assert statistics.stdev(gaps) == pytest.approx(deviation, rel=0.1, abs=1e-9)


def test_a_summary_of_nothing_is_not_a_crash() -> None:
    facts = Summary([]).facts
    assert facts["throughput"]["requests_per_second"] == 0
    assert facts["latency_seconds"]["ttft"] is None
    failed = Sample(0.0)
    failed.fail("kind", "words")
    assert Summary([failed]).facts["requests"]["errors"] == {"kind": {"count": 1, "message": "words"}}


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["{model}", "-c", "2", "--rate", "3"], 2, "not both"),
        (["{model}", "--rate", "0"], 2, "--rate must be above 0"),
        (["{model}", "--duration", "-1"], 2, "--duration must be above 0"),
        (["{model}", "--prompt-tokens", "many"], 1, "--prompt-tokens many: write a number of tokens"),
        (["{model}", "--output-tokens", "uniform:9:2"], 1, "--output-tokens uniform:9:2"),
        (["{model}", "--output-tokens", "normal:9:2"], 1, "--output-tokens normal:9:2"),
        (["no-such-model"], 1, "no-such-model is neither a folder nor a model"),
        (["http://"], 1, "is no address"),
        (["http://127.0.0.1:1", "--overlay", "{{}}"], 1, "--overlay changes an engine in this process"),
    ],
)
def test_mistakes_are_told(
    tiny_folder: Path, arguments: list[str], code: int, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = invoke(*(argument.format(model=tiny_folder) for argument in arguments))
    assert done.exit_code == code, done.output
    assert sentence in done.stderr
