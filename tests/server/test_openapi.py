"""The OpenAPI document is what the server does: generated requests find no 5xx and no answer it does not describe."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import hypothesis
import pytest
import schemathesis
from running import Running, started
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from oga.server import ModelSource, ServerSettings

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
]
EXAMPLES = 12


@pytest.fixture(scope="module")
def documented(sources: list[ModelSource]) -> Iterator[Running]:
    with started(ServerSettings(models=sources, max_sessions=16)) as running:
        yield running


@pytest.fixture(scope="module")
def api(documented: Running) -> schemathesis.schemas.BaseSchema:
    return schemathesis.openapi.from_url(f"{documented.url}/openapi.json")


OPERATIONS = [
    "POST /v1/chat/completions",
    "POST /v1/completions",
    "POST /v1/responses",
    "GET /v1/responses/{response_id}",
    "DELETE /v1/responses/{response_id}",
    "POST /v1/sessions",
    "GET /v1/sessions",
    "GET /v1/sessions/{session_id}",
    "DELETE /v1/sessions/{session_id}",
    "POST /v1/sessions/{session_id}/rewind",
    "POST /v1/sessions/{session_id}/fork",
    "GET /v1/models",
    "GET /v1/models/{model}",
    "POST /admin/models/{model}/load",
    "POST /admin/models/{model}/unload",
    "POST /v1/embeddings",
    "POST /tokenize",
    "POST /detokenize",
    "GET /health",
    "GET /ready",
    "GET /metrics",
    "GET /v1/resources",
]


def test_every_operation_is_tested(documented: Running) -> None:
    document = httpx.get(f"{documented.url}/openapi.json").json()
    found = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert found == set(OPERATIONS)
    assert not re.search(r'"422"', str(document["paths"]))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_generated_requests_find_nothing_that_is_not_described(
    documented: Running, api: schemathesis.schemas.BaseSchema, operation: str
) -> None:
    method, path = operation.split()
    strategy = api[path][method].as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
    wrong = api[path][method].as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE)

    @hypothesis.settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(case=strategy | wrong)
    def check(case: schemathesis.Case) -> None:
        response = case.call(base_url=documented.url, timeout=30)
        # A body that is too large is refused too, which schemathesis does not count among refusals.
        checks = [each for each in CHECKS if response.status_code != 413 or each is not negative_data_rejection]
        case.validate_response(response, checks=checks)

    check()
    documented.assert_idle()
