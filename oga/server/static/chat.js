"use strict";
// The chat page. A conversation is a session of the server; nothing of it is stored in the browser but the API key and
// the settings, for as long as the tab is open.

const one = (selector, root = document) => root.querySelector(selector);
const state = { session: null, turns: [], answering: null };
const GAUGE_MILLISECONDS = 2000;

// --- the server

async function call(method, path, body, signal, triesLeft = 10) {
  const key = one("#key").value;
  const response = await fetch(path, {
    method,
    signal,
    headers: { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (response.status === 409 && triesLeft > 0) {
    // The answer that was just stopped is still ending.
    await new Promise((resolve) => setTimeout(resolve, 50));
    return call(method, path, body, signal, triesLeft - 1);
  }
  if (!response.ok) {
    const found = await response.json().catch(() => null);
    throw new Error(found?.error?.message ?? `The server answered ${response.status}.`);
  }
  return response;
}

const ask = async (method, path, body) => (await call(method, path, body)).json();

// Yields the objects of a stream of server-sent events.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    waiting += value;
    const blocks = waiting.split("\n\n");
    waiting = blocks.pop();
    for (const block of blocks) {
      if (!block.startsWith("data: ")) continue;
      if (block === "data: [DONE]") return;
      const event = JSON.parse(block.slice("data: ".length));
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}

// --- what is shown

function say(text, isBad = false) {
  const status = one("#status");
  status.textContent = text;
  status.classList.toggle("bad", isBad);
}

function show(turn) {
  const article = one("#turn").content.firstElementChild.cloneNode(true);
  one(".said", article).textContent = turn.said;
  one(".answer", article).textContent = turn.answer;
  one(".regenerate", article).addEventListener("click", () => guarded(() => regenerate(turn)));
  one(".fork", article).addEventListener("click", () => guarded(() => fork(turn)));
  turn.article = article;
  one("#turns").append(article);
  article.scrollIntoView({ block: "end" });
}

function showAll() {
  one("#turns").replaceChildren();
  state.turns.forEach(show);
  one("#prompt").focus();
}

function title(session) {
  const first = session.turns[0]?.messages.at(-1)?.content;
  return first ? first.slice(0, 60) : "New conversation";
}

async function showConversations() {
  const { data } = await ask("GET", "v1/sessions");
  one("#conversations").replaceChildren(
    ...data.reverse().map((session) => {
      const item = document.createElement("li");
      const open = document.createElement("button");
      open.type = "button";
      open.className = "open";
      open.textContent = title(session);
      if (session.id === state.session) open.setAttribute("aria-current", "true");
      open.addEventListener("click", () => guarded(() => openSession(session.id)));
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "remove";
      remove.textContent = "✕";
      remove.setAttribute("aria-label", `Delete the conversation ${title(session)}`);
      remove.addEventListener("click", () => guarded(() => removeSession(session.id)));
      item.append(open, remove);
      return item;
    }),
  );
}

async function showGauge() {
  if (document.hidden) return;
  const { models } = await ask("GET", "v1/resources");
  const found = models[one("#model").value];
  if (!found) return;
  const share = found.used_cache_bytes / Math.max(1, found.cache_bytes);
  one("#memory").value = share;
  one("#memory-text").textContent =
    `${(share * 100).toFixed(share < 0.1 ? 1 : 0)}% of ${(found.cache_bytes / 2 ** 20).toFixed(0)} MiB`;
}

// --- conversations

async function openSession(id) {
  stop();
  const session = await ask("GET", `v1/sessions/${encodeURIComponent(id)}`);
  state.session = session.id;
  state.turns = session.turns.map((turn) => ({
    number: turn.turn,
    said: turn.messages.at(-1)?.content ?? "",
    answer: turn.answer?.content ?? "",
  }));
  one("#model").value = session.model;
  history.replaceState(null, "", `#${session.id}`);
  closeSide();
  showAll();
  await showConversations();
}

function newConversation() {
  stop();
  state.session = null;
  state.turns = [];
  history.replaceState(null, "", location.pathname);
  closeSide();
  showAll();
  return showConversations();
}

async function removeSession(id) {
  await ask("DELETE", `v1/sessions/${encodeURIComponent(id)}`);
  if (id === state.session) await newConversation();
  else await showConversations();
}

async function ensureSession() {
  if (state.session) return;
  const system = one("#system").value.trim();
  const session = await ask("POST", "v1/sessions", {
    model: one("#model").value,
    messages: system ? [{ role: "system", content: system }] : [],
  });
  state.session = session.id;
  history.replaceState(null, "", `#${session.id}`);
}

// --- turns

function sampling() {
  const found = {};
  for (const field of document.querySelectorAll("#settings .pairs [name]")) {
    if (field.value !== "" && field.checkValidity()) {
      found[field.name] = field.type === "number" ? Number(field.value) : field.value === "true";
    }
  }
  return found;
}

async function send(said) {
  await ensureSession();
  const turn = { number: state.turns.length + 1, said, answer: "" };
  state.turns.push(turn);
  show(turn);
  await answer(turn);
  await showConversations();
}

async function answer(turn) {
  const aborting = new AbortController();
  state.answering = aborting;
  one("#send").hidden = true;
  one("#stop").hidden = false;
  turn.article.classList.add("busy");
  say("Answering …");
  const begun = performance.now();
  let first = 0;
  let tokens = 0;
  try {
    const body = {
      session_id: state.session,
      messages: [{ role: "user", content: turn.said }],
      stream: true,
      stream_options: { include_usage: true },
      ...sampling(),
    };
    const response = await call("POST", "v1/chat/completions", body, aborting.signal);
    for await (const event of events(response)) {
      const text = event.choices[0]?.delta?.content;
      if (text) {
        first ||= performance.now();
        turn.answer += text;
        one(".answer", turn.article).append(text);
        follow();
      }
      if (event.usage) tokens = event.usage.completion_tokens;
    }
    const seconds = (performance.now() - (first || begun)) / 1000;
    const wait = first ? `, first after ${(first - begun).toFixed(0)} ms` : "";
    one(".speed", turn.article).textContent =
      `${tokens} tokens, ${(tokens / Math.max(seconds, 0.001)).toFixed(1)} tokens/s${wait}`;
    say("Done.");
  } catch (error) {
    if (!aborting.signal.aborted) {
      // The turn is not part of the conversation, so what was said goes back to where it can be said again.
      state.turns = state.turns.filter((each) => each !== turn);
      turn.article.remove();
      if (!one("#prompt").value) one("#prompt").value = turn.said;
      throw error;
    }
    one(".speed", turn.article).textContent = "stopped";
    say("Stopped.");
  } finally {
    state.answering = null;
    one("#send").hidden = false;
    one("#stop").hidden = true;
    turn.article.classList.remove("busy");
    one("#prompt").focus();
    showGauge().catch(() => {});
  }
}

function stop() {
  state.answering?.abort();
}

function follow() {
  const main = one("main");
  if (main.scrollHeight - main.scrollTop - main.clientHeight < 160) main.scrollTop = main.scrollHeight;
}

async function regenerate(turn) {
  if (state.answering) return;
  await ask("POST", `v1/sessions/${encodeURIComponent(state.session)}/rewind`, { turn: turn.number });
  state.turns.splice(turn.number - 1);
  showAll();
  await send(turn.said);
}

async function fork(turn) {
  if (state.answering) return;
  const forked = await ask("POST", `v1/sessions/${encodeURIComponent(state.session)}/fork`);
  if (forked.turns.length > turn.number) {
    await ask("POST", `v1/sessions/${encodeURIComponent(forked.id)}/rewind`, { turn: turn.number + 1 });
  }
  await openSession(forked.id);
  say("This is the fork. The other conversation is in the list.");
}

// --- the rest

async function guarded(work) {
  try {
    await work();
  } catch (error) {
    say(error.message, true);
  }
}

function closeSide() {
  document.body.classList.remove("side");
  one("#show-side").setAttribute("aria-expanded", "false");
}

function submit(event) {
  event?.preventDefault();
  const prompt = one("#prompt");
  const said = prompt.value;
  if (!said.trim() || state.answering) return;
  prompt.value = "";
  grow();
  guarded(() => send(said));
}

function grow() {
  const prompt = one("#prompt");
  prompt.rows = Math.min(12, prompt.value.split("\n").length);
}

function remember() {
  const kept = Object.fromEntries(new FormData(one("#settings")));
  sessionStorage.setItem("settings", JSON.stringify(kept));
  sessionStorage.setItem("key", one("#key").value);
}

function recall() {
  one("#key").value = sessionStorage.getItem("key") ?? "";
  for (const [name, value] of Object.entries(JSON.parse(sessionStorage.getItem("settings") ?? "{}"))) {
    const field = one(`#settings [name=${name}]`);
    if (field && name !== "model") field.value = value;
  }
}

async function start() {
  const { data } = await ask("GET", "v1/models");
  one("#model").replaceChildren(
    ...data.filter((model) => model.state === "loaded").map((model) => new Option(model.id, model.id)),
  );
  say("");
  const wanted = location.hash.slice(1);
  if (wanted) await openSession(wanted).catch(newConversation);
  else await showConversations();
  await showGauge();
}

one("#composer").addEventListener("submit", submit);
one("#prompt").addEventListener("input", grow);
one("#prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
});
one("#stop").addEventListener("click", stop);
one("#new").addEventListener("click", () => guarded(newConversation));
one("#settings").addEventListener("input", remember);
one("#settings").addEventListener("submit", (event) => event.preventDefault());
one("#key").addEventListener("change", () => guarded(start));
one("#show-side").addEventListener("click", () => {
  const isOpen = document.body.classList.toggle("side");
  one("#show-side").setAttribute("aria-expanded", String(isOpen));
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    stop();
    closeSide();
  } else if (event.altKey && event.code === "KeyN") {
    event.preventDefault();
    guarded(newConversation);
  }
});
setInterval(() => showGauge().catch(() => {}), GAUGE_MILLISECONDS);
recall();
guarded(start);
