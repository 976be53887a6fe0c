"""Twenty JSON schemas of growing difficulty on SmolLM2 at temperature 1: every answer that ends follows its schema.

Few answers for each here; ``make guided`` lets it give fifty.
"""

from __future__ import annotations

import pytest
from guided_schemas import CASES, Tally, ask, fault

import oga
from oga.export import convert, fetch_source

EACH, LONGEST, TOGETHER = 6, 160, 32


@pytest.fixture(scope="module")
def tallies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tally]:
    """What became of the answers, by the name of the case."""
    folder = convert(fetch_source("smollm2"), tmp_path_factory.mktemp("smollm2") / "int8", precision="int8").folder
    with oga.Config(folder) as config:
        config.overlay({"engine": {"dynamic_batching": {"max_batch_size": TOGETHER, "num_blocks": 2000}}})
        with oga.Model(config) as model, oga.Engine(model) as engine:
            return {case.name: tally for case, tally in ask(engine, EACH, LONGEST, TOGETHER)}


@pytest.mark.parametrize("name", [case.name for case in CASES])
def test_every_answer_that_ends_follows_its_schema(tallies: dict[str, Tally], name: str) -> None:
    tally = tallies[name]
    assert tally.faults == []
    assert tally.valid + tally.cut == EACH
    assert tally.valid > 0


def test_few_answers_are_cut(tallies: dict[str, Tally]) -> None:
    assert len(tallies) == len(CASES) == 20
    assert sum(tally.cut for tally in tallies.values()) <= len(CASES) * EACH // 10


def test_answers_differ(tallies: dict[str, Tally]) -> None:
    assert sum(len(tally.answers) > 1 for tally in tallies.values()) >= 17


def test_the_judge_refuses_what_does_not_follow() -> None:
    by_name = {case.name: case.schema for case in CASES}
    for name, answer in (
        ("boolean", "1"),
        ("flat object", '{"name": "x", "age": 121}'),
        ("flat object", '{"name": "x", "age": 1, "age": 2}'),
        ("formats", '{"day": "2023-02-30"}'),
        ("tuple", '["Paris", 48.9, "N", 1]'),
        ("number range", '{"chance": NaN, "degrees": 1}'),
        ("recursion", '{"left": "one"}'),
        ("enum", '"yellow"'),
    ):
        assert fault(answer, by_name[name]) is not None, answer
    assert fault('["Paris", 48.9, "N"]', by_name["tuple"]) is None
