"""The chat page in a headless browser. OGA_SCREENSHOTS=docs/_static/chat writes the pictures of the documentation."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from running import Running

from oga.server.schemas.sampler import SamplerFields

WIDE, PHONE = {"width": 1100, "height": 720}, {"width": 390, "height": 780}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    assert program, "no Chromium is installed: apt-get install chromium-headless-shell"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Browser, server: Running) -> Iterator[Page]:
    """The page, with everything that goes wrong in the browser collected and refused."""
    yield from opened_page(browser, server.url)


def opened_page(browser: Browser, url: str, **options: Any) -> Iterator[Page]:
    context = browser.new_context(**({"viewport": WIDE, "color_scheme": "light"} | options))
    page = context.new_page()
    page.set_default_timeout(10_000)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: None if request.url.startswith((url, "data:")) else wrong.append(request.url))
    page.goto(url)
    expect(page.locator("#model option").first).to_be_attached()
    yield page
    context.close()
    assert [each for each in wrong if "status of 4" not in each] == []


def ask(page: Page, text: str) -> None:
    page.locator("#prompt").fill(text)
    page.locator("#prompt").press("Enter")


def scripted(page: Page) -> None:
    page.locator("#model").select_option("scripted")


def finished(page: Page, count: int) -> None:
    """Waits until so many turns are there and none goes on."""
    expect(page.locator(".turn")).to_have_count(count)
    expect(page.locator(".turn.busy")).to_have_count(0)


def picture(page: Page, name: str, folder: Path) -> None:
    target = Path(os.environ.get("OGA_SCREENSHOTS", folder))
    target.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=target / f"{name}.png")
    assert (target / f"{name}.png").stat().st_size > 2000


def test_an_answer_is_streamed_into_the_page(page: Page) -> None:
    scripted(page)
    ask(page, "count 1")
    finished(page, 1)
    expect(page.locator(".said")).to_have_text("count 1")
    expect(page.locator(".answer")).to_have_text("UNO DUE TRE")
    expect(page.locator(".speed")).to_have_text(re.compile(r"^3 tokens, [\d.]+ tokens/s, first after \d+ ms$"))
    expect(page.locator("#prompt")).to_have_value("")
    expect(page.locator("#prompt")).to_be_focused()
    expect(page.locator("#conversations .open")).to_have_text(["count 1"])


def test_what_people_and_models_write_is_text(page: Page) -> None:
    scripted(page)
    ask(page, "<img src=x onerror=alert(1)><b>3")
    finished(page, 1)
    expect(page.locator(".said")).to_have_text("<img src=x onerror=alert(1)><b>3")
    expect(page.locator(".answer")).to_have_text("smile 🙂~")
    assert page.locator(".said *").count() == 0


@pytest.mark.usefixtures("slow_steps")
@pytest.mark.parametrize("how", ["button", "escape"])
def test_an_answer_can_be_stopped_and_the_conversation_goes_on(page: Page, server: Running, how: str) -> None:
    ask(page, "x")
    expect(page.locator("#stop")).to_be_visible()
    expect(page.locator(".turn.busy .answer")).not_to_be_empty()
    if how == "button":
        page.locator("#stop").click()
    else:
        page.keyboard.press("Escape")
    finished(page, 1)
    expect(page.locator(".speed")).to_have_text("stopped")
    server.wait_idle()
    page.locator("[name=max_tokens]").fill("3")
    ask(page, "y")
    finished(page, 2)
    assert page.locator(".answer").nth(1).inner_text()


def test_regenerating_takes_back_a_turn_and_all_later_ones(page: Page, server: Running) -> None:
    scripted(page)
    for number, text in enumerate(("1", "2", "4"), start=1):
        ask(page, text)
        finished(page, number)
    page.locator(".turn").nth(1).locator(".regenerate").click()
    finished(page, 2)
    expect(page.locator(".answer")).to_have_text(["UNO DUE TRE", " Alice!"])
    sessions = httpx.get(f"{server.url}/v1/sessions").json()["data"]
    assert [len(session["turns"]) for session in sessions] == [2]


def test_a_fork_goes_on_from_its_turn(page: Page, server: Running) -> None:
    scripted(page)
    for number, text in enumerate(("1", "2"), start=1):
        ask(page, text)
        finished(page, number)
    page.locator(".turn").first.locator(".fork").click()
    finished(page, 1)
    ask(page, "4")
    finished(page, 2)
    expect(page.locator(".answer")).to_have_text(["UNO DUE TRE", "one\ntwo\nthree"])
    expect(page.locator("#conversations .open")).to_have_count(2)
    page.locator("#conversations .open").nth(1).click()
    expect(page.locator(".answer")).to_have_text(["UNO DUE TRE", " Alice!"])
    sessions = httpx.get(f"{server.url}/v1/sessions").json()["data"]
    assert sorted(turn["messages"][0]["content"] for session in sessions for turn in session["turns"]) == list("1124")


def test_conversations_can_be_left_found_again_and_deleted(page: Page) -> None:
    scripted(page)
    ask(page, "1")
    finished(page, 1)
    page.keyboard.press("Alt+n")
    finished(page, 0)
    expect(page.locator("#empty")).to_be_visible()
    ask(page, "2")
    finished(page, 1)
    page.reload()
    expect(page.locator(".answer")).to_have_text([" Alice!"])
    page.locator("#conversations .remove").first.click()
    finished(page, 0)
    expect(page.locator("#conversations .open")).to_have_text(["1"])


def test_settings_and_the_system_prompt_reach_the_server(page: Page, server: Running) -> None:
    page.locator("#system").fill("be brief")
    page.locator("[name=max_tokens]").fill("2")
    page.locator("[name=temperature]").fill("0.5")
    page.locator("[name=seed]").fill("7")
    with page.expect_request("**/v1/chat/completions") as caught:
        ask(page, "x")
    finished(page, 1)
    sent = caught.value.post_data_json
    assert {name: sent[name] for name in ("max_tokens", "temperature", "seed")} == {
        "max_tokens": 2,
        "temperature": 0.5,
        "seed": 7,
    }
    assert "top_p" not in sent
    (session,) = httpx.get(f"{server.url}/v1/sessions").json()["data"]
    assert session["system"] == ["be brief"]
    expect(page.locator(".speed")).to_have_text(re.compile("^2 tokens"))
    page.reload()
    expect(page.locator("[name=temperature]")).to_have_value("0.5")


def test_every_sampler_field_is_a_setting_of_its_kind(page: Page) -> None:
    listed = page.locator("#settings .pairs [name]").evaluate_all("fields => fields.map(field => field.name)")
    assert set(listed) == {*SamplerFields.__annotations__, "seed", "max_tokens"}
    assert len(set(listed)) == len(listed)
    page.locator("summary").click()
    page.locator("[name=max_tokens]").fill("3")
    page.locator("[name=dry_range]").fill("5")
    page.locator("[name=presence_penalty]").fill("-0.25")
    page.locator("[name=repetition_penalty]").fill("0")  # which its range excludes, so it is not sent
    page.locator("[name=ignore_eos]").select_option("true")
    with page.expect_request("**/v1/chat/completions") as caught:
        ask(page, "x")
    finished(page, 1)
    sent = caught.value.post_data_json
    assert {name: sent[name] for name in sent if name in listed} == {
        "max_tokens": 3,
        "dry_range": 5,
        "presence_penalty": -0.25,
        "ignore_eos": True,
    }


def test_an_error_is_said_and_the_message_comes_back(page: Page) -> None:
    ask(page, "x" * 3000)
    expect(page.locator("#status.bad")).to_contain_text("session limit of 1024")
    finished(page, 0)
    expect(page.locator("#prompt")).to_have_value("x" * 3000)


def test_everything_is_reached_by_keyboard(page: Page) -> None:
    scripted(page)
    ask(page, "1")
    finished(page, 1)
    reached = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("(e => e.id || e.name || e.className)(document.activeElement)"))
    assert {"new", "model", "system", "temperature", "seed", "key", "regenerate", "fork", "prompt", "open"} <= reached
    unnamed = page.evaluate(
        """[...document.querySelectorAll("button, input, select, textarea")]
             .filter(e => !(e.textContent.trim() || e.labels?.length || e.getAttribute("aria-label")))
             .map(e => e.outerHTML)"""
    )
    assert unnamed == []
    page.locator("#prompt").focus()
    page.keyboard.type("two")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("lines")
    expect(page.locator("#prompt")).to_have_value("two\nlines")


def test_the_page_asks_for_a_key_when_the_server_does(browser: Browser, start: Callable[..., Running]) -> None:
    running = start(api_keys=("secret",))
    context = browser.new_context()
    page = context.new_page()
    page.goto(running.url)
    expect(page.locator("#status.bad")).to_contain_text("API key")
    page.locator("#key").fill("secret")
    page.locator("#key").press("Tab")
    expect(page.locator("#model option")).to_have_count(1)
    page.locator("[name=max_tokens]").fill("2")
    ask(page, "x")
    finished(page, 1)
    context.close()
    running.assert_idle()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", ["wide", "phone"])
def test_it_looks_right(browser: Browser, server: Running, tmp_path: Path, scheme: str, size: str) -> None:
    viewport = WIDE if size == "wide" else PHONE
    for page in opened_page(browser, server.url, viewport=viewport, color_scheme=scheme):
        if size == "phone":
            expect(page.locator("aside")).not_to_be_visible()
            page.locator("#show-side").click()
            expect(page.locator("aside")).to_be_visible()
        scripted(page)
        if size == "phone":
            page.keyboard.press("Escape")
        questions = ("Can you count to three, in Italian? 1", "And in English, a line each? 4")
        for number, text in enumerate(questions, start=1):
            ask(page, text)
            finished(page, number)
        expect(page.locator("#memory-text")).to_have_text(re.compile(r"[1-9]% of \d+ MiB"))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        back, front = page.evaluate("(s => [s.backgroundColor, s.color])(getComputedStyle(document.body))")
        assert contrast(back, front) > 7
        picture(page, f"{size}-{scheme}", tmp_path)


def contrast(back: str, front: str) -> float:
    """The contrast of two colours as WCAG counts it."""

    def luminance(colour: str) -> float:
        channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(back), luminance(front)))
    return (light + 0.05) / (dark + 0.05)


def test_the_page_needs_nothing_from_elsewhere(http: httpx.Client) -> None:
    for path, kind in (("/", "text/html"), ("/chat.css", "text/css"), ("/chat.js", "text/javascript")):
        response = http.get(path)
        assert response.headers["content-type"].startswith(kind)
        policy = response.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert not re.findall(r"https?://", response.text)


def test_the_page_can_be_left_out(start: Callable[..., Running]) -> None:
    running = start(has_page=False)
    assert httpx.get(running.url).status_code == 404
