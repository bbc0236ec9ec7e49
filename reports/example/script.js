"use strict";
// Shared by all pages: making elements from text (never from HTML), and the switch between light and dark.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) node.append(child);
  }
  return node;
}

function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

// As `texts.count_text`: 1 sample, 2,170 samples.
function counted(count, one, many = `${one}s`) {
  return `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
}

function draw(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

{
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const tell = () => {
    document.getElementById("theme-name").textContent = isDark() ? "Light colours" : "Dark colours";
  };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("awb-theme", root.dataset.theme);
    } catch {
      // Not kept; the page still changes.
    }
    tell();
  });
  system.addEventListener("change", tell);
  button.hidden = false;
  tell();
}
// The pages of a report: the list with its filters and search, and the page of a sample. All texts come from models,
// judges and environments: they are only ever set as text.

const DASH = "–";
// What the list showed last, for "next" and "previous". All pages on a disk share one storage: each report has its own key.
const LIST = `awb-list ${document.querySelector("link[rel=stylesheet]").href}`;
const by = (id) => document.getElementById(id);
const fixed = (value) => (value === null || value === undefined ? DASH : value.toFixed(1));

function load(address, name) {
  // A script file that assigns window.AWB[name]: pages on a disk may not fetch.
  return new Promise((done, failed) => {
    const script = make("script", { src: address });
    script.addEventListener("load", () => done(window.AWB[name]));
    script.addEventListener("error", () => failed(new Error(address)));
    document.head.append(script);
  });
}

function remember(value) {
  try {
    sessionStorage.setItem(LIST, JSON.stringify(value));
  } catch {
    // Not kept; the pages still follow each other in the order of the data.
  }
}

function remembered() {
  try {
    return JSON.parse(sessionStorage.getItem(LIST));
  } catch {
    return null;
  }
}

// --- the list ---

const STEP = 100;
const PAGE = 0, ID = 1, DOMAIN = 2, TURN = 3, TURNS = 4, CHARACTERS = 5, FAILURE = 6, SCORES = 7, JUDGE_FAILURES = 8, SIDES = 9, RULE = 10, METRICS = 11, ACTION = 12;
const SIDE_NAMES = { k: "kinder", s: "stricter" };

function startList(data) {
  const form = by("filters");
  const fields = ["words", "domain", "judge", "of", "low", "high", "failure", "metric", "most", "conflict"];
  const words = (text) => text.replaceAll("_", " ");
  const option = (value, name) => make("option", { value }, name);
  by("domain").append(...data.domains.map(([name, shown]) => option(name, shown)));
  by("judge").append(...data.judges.map((name, at) => option(String(at), name)));
  by("judge").closest(".field").hidden = data.judges.length < 2;
  if (!data.judges.length) {
    by("of").value = "rule";
    by("of").disabled = true;
    by("samples").classList.add("unjudged");
    by("conflict").closest(".field").hidden = true;
  }
  const kinds = new Set(data.lines.flatMap((line) => [line[FAILURE], ...line[JUDGE_FAILURES]]).filter(Boolean));
  by("failure").append(...[...kinds].sort().map((kind) => option(kind, words(kind))));
  by("metric").append(...data.metrics.map((name) => option(name, name)));
  let found = [];
  let shown = 0;
  let order = { column: null, up: true };
  const texts = new Map();
  const judge = () => Number(by("judge").value || 0);
  const number = (id) => (by(id).value.trim() === "" ? null : Number(by(id).value));

  function failures(line) {
    return [...new Set([line[FAILURE], line[JUDGE_FAILURES][judge()]])].filter(Boolean);
  }

  function fits(line) {
    const [domain, failure, metric, conflict] = ["domain", "failure", "metric", "conflict"].map((id) => by(id).value);
    if (domain && data.domains[line[DOMAIN]][0] !== domain) return false;
    const kindsHere = failures(line);
    if (failure === "-" ? kindsHere.length : failure === "+" ? !kindsHere.length : failure && !kindsHere.includes(failure)) return false;
    const score = by("of").value === "rule" ? line[RULE] : line[SCORES][judge()];
    const [low, high, most] = ["low", "high", "most"].map(number);
    if (low !== null && !(score !== null && score !== undefined && score >= low)) return false;
    if (high !== null && !(score !== null && score !== undefined && score <= high)) return false;
    if (metric) {
      const value = line[METRICS][data.metrics.indexOf(metric)];
      if (value === null || (most !== null && value > most)) return false;
    }
    const side = line[SIDES][judge()];
    return !conflict || (conflict === "+" ? Boolean(side) : side === conflict);
  }

  async function search(lines, wanted) {
    const needed = [...new Set(lines.map((line) => data.domains[line[DOMAIN]][0]))];
    for (const domain of needed.filter((name) => !texts.has(name))) texts.set(domain, await load(`search-${domain}.js`, "search"));
    return lines.filter((line) => {
      const text = texts.get(data.domains[line[DOMAIN]][0])[line[PAGE]];
      return wanted.every((word) => text.includes(word));
    });
  }

  function row(line) {
    const notes = failures(line).map((kind) => make("span", { class: kind === "not_run" ? "badge" : "badge failed" }, words(kind)));
    const side = SIDE_NAMES[line[SIDES][judge()]];
    if (side) notes.push(make("span", { class: `badge ${side}` }, `judge ${side}`));
    return make("tr", {},
      make("th", { scope: "row" }, make("a", { href: `samples/${encodeURIComponent(line[PAGE])}.html` }, line[ID])),
      make("td", { class: "t wide action" }, line[ACTION]),
      make("td", {}, `${line[TURN]}/${line[TURNS]}`),
      make("td", { class: "wide" }, (line[CHARACTERS] / 1000).toFixed(1)),
      make("td", {}, fixed(line[SCORES][judge()])),
      make("td", {}, fixed(line[RULE])),
      make("td", { class: "t note" }, notes));
  }

  function more() {
    by("rows").append(...found.slice(shown, shown + STEP).map(row));
    shown = Math.min(found.length, shown + STEP);
    by("more").hidden = shown === found.length;
    by("more").textContent = `Show ${Math.min(STEP, found.length - shown)} more`;
  }

  const keys = [(line) => null, null, (line) => line[TURN], (line) => line[CHARACTERS], (line) => line[SCORES][judge()], (line) => line[RULE], null];

  function sorted(lines) {
    if (order.column === null) return lines;
    if (order.column === 0) return order.up ? lines : [...lines].reverse();
    const key = keys[order.column];
    const missing = (value) => value === null || value === undefined;
    return [...lines].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (missing(x) || missing(y)) return missing(x) - missing(y);
      return (x - y) * (order.up ? 1 : -1);
    });
  }

  let turn = 0;
  async function update() {
    const mine = ++turn;
    const wanted = by("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    let lines = data.lines.filter(fits);
    if (wanted.length) {
      try {
        lines = await search(lines, wanted);
      } catch (problem) {
        by("told").textContent = `${problem.message} could not be loaded; without it nothing can be searched.`;
        return;
      }
    }
    if (mine !== turn) return; // a later change is under way
    found = sorted(lines);
    shown = 0;
    by("rows").replaceChildren();
    more();
    by("told").textContent = found.length ? `${found.length.toLocaleString("en")} of ${counted(data.lines.length, "prediction")}.` : "No prediction fits; clear a filter.";
    const state = new URLSearchParams();
    for (const id of fields) if (by(id).value && !(id === "judge" && by(id).value === "0") && !(id === "of" && by(id).value === "judge")) state.set(id, by(id).value);
    if (order.column !== null) state.set("sort", `${order.column}${order.up ? "" : "-"}`);
    history.replaceState(null, "", state.size ? `#${state}` : location.pathname);
    remember({ pages: found.map((line) => line[PAGE]), hash: state.size ? `#${state}` : "", filtered: found.length < data.lines.length || order.column !== null });
  }

  const heads = [...by("samples").tHead.rows[0].cells];
  const marks = () => heads.forEach((head, column) => {
    head.removeAttribute("aria-sort");
    if (column === order.column) head.setAttribute("aria-sort", order.up ? "ascending" : "descending");
  });
  heads.forEach((head, column) => {
    if (!keys[column]) return;
    const button = make("button", { type: "button", class: "sort" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      order = { column, up: order.column === column ? !order.up : column !== 3 };
      marks();
      update();
    });
  });

  const restore = () => {
    const state = new URLSearchParams(location.hash.slice(1));
    for (const id of fields) if (state.has(id)) by(id).value = state.get(id);
    const sort = /^(\d)(-?)$/.exec(state.get("sort") || "");
    if (sort && keys[Number(sort[1])]) order = { column: Number(sort[1]), up: !sort[2] };
    marks();
  };
  restore();
  form.hidden = by("samples").hidden = false;
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { order = { column: null, up: true }; marks(); update(); }));
  by("more").addEventListener("click", more);
  addEventListener("hashchange", () => { restore(); update(); });
  update();
}

if (by("samples")) startList(window.AWB.list);

// --- a sample ---

function pressed(button, on) {
  button.setAttribute("aria-pressed", on);
  return on;
}

function toggle(id, act) {
  const button = by(id);
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => act(pressed(button, button.getAttribute("aria-pressed") !== "true")));
}

function texts(node) {
  const walker = document.createTreeWalker(node, NodeFilter.SHOW_TEXT);
  const found = [];
  while (walker.nextNode()) found.push(walker.currentNode);
  return found;
}

// Marks put into texts, and taken out again: `data-was` of a mark holds the text that it stands for.

function unmark(node, kind) {
  for (const mark of node.querySelectorAll(`.${kind}`)) mark.replaceWith(mark.dataset.was);
  node.normalize();
}

function mark(node, made) {
  for (const text of texts(node)) {
    const parts = text.parentElement.closest(".heads, .skip-note") ? null : made(text.data);
    if (parts) text.replaceWith(...parts);
  }
}

function blanks(text) {
  if (!/[ \t\u00a0]/.test(text)) return null;
  const signs = { " ": "·", "\t": "→\t", "\u00a0": "⍽" };
  return text.split(/([ \t\u00a0])/).filter(Boolean).map((part) => (signs[part] ? make("span", { class: "blank", "data-was": part }, signs[part]) : part));
}

function painted(text) {
  // Escape sequences that set colours, as colours; all others are left out of sight.
  if (!text.includes("␛[")) return null;
  const parts = text.split(/␛\[([\d;]*)([A-Za-z])/);
  const whole = make("span", { class: "painted", "data-was": text }, parts[0]);
  let set = [];
  for (let at = 1; at < parts.length; at += 3) {
    if (parts[at + 1] === "m") {
      for (const code of (parts[at] || "0").split(";").map(Number)) set = code === 0 ? [] : [...set, code];
    }
    whole.append(set.length ? make("b", { class: set.map((code) => `sgr-${code}`).join(" ") }, parts[at + 2]) : parts[at + 2]);
  }
  return [whole];
}

function startDiff(diff) {
  const rows = [...diff.children].slice(1);
  let hidden = 0;
  rows.forEach((row, at) => {
    hidden = row.classList.contains("far") ? hidden + 1 : hidden;
    const next = rows[at + 1];
    if (hidden && row.classList.contains("far") && !(next && next.classList.contains("far"))) {
      row.after(make("div", { class: "skip-note" }, counted(hidden, "equal line")));
      hidden = 0;
    }
  });
  const modes = { inline: by("inline"), side: by("side") };
  modes.inline.parentElement.hidden = false;
  const show = (mode) => {
    for (const [name, button] of Object.entries(modes)) pressed(button, name === mode);
    diff.classList.toggle("side", mode === "side");
    diff.classList.toggle("inline", mode === "inline");
    if (mode === "inline") {
      for (const twin of diff.querySelectorAll(".second")) twin.remove();
      return;
    }
    for (const row of diff.querySelectorAll(".same")) {
      if (row.children.length > 1) continue;
      const twin = row.firstElementChild.cloneNode(true);
      twin.classList.add("second");
      row.append(twin);
    }
  };
  for (const [name, button] of Object.entries(modes)) button.addEventListener("click", () => show(name));
  toggle("only", (on) => diff.classList.toggle("only", on));
  const marks = { blank: false, painted: false };
  const remark = (kind, on) => {
    // Colours are found in texts without other marks, so all are made anew.
    marks[kind] = on;
    for (const one of ["blank", "painted"]) unmark(diff, one);
    if (marks.painted) mark(diff, painted);
    if (marks.blank) mark(diff, blanks);
  };
  toggle("blanks", (on) => remark("blank", on));
  toggle("colours", (on) => remark("painted", on));
}

function folded(value, key, depth) {
  const label = key === null ? "" : make("span", { class: "key" }, `${key}: `);
  if (value === null || typeof value !== "object") return make("div", {}, label, typeof value === "string" ? value : JSON.stringify(value));
  const entries = Object.entries(value);
  const size = Array.isArray(value) ? `[${entries.length}]` : `{${entries.length}}`;
  const inner = make("details", { open: depth < 2 }, make("summary", {}, label, size));
  const fill = () => {
    if (inner.childElementCount === 1) inner.append(...entries.map(([name, held]) => folded(held, name, depth + 1)));
  };
  if (depth < 2) fill();
  else inner.addEventListener("toggle", fill); // only what is opened is made
  return inner;
}

function startJson() {
  for (const pre of document.querySelectorAll("pre[data-json]")) {
    const button = make("button", { type: "button", "aria-pressed": "false" }, "Fold JSON");
    const view = make("div", { class: "text folded", hidden: true });
    pre.before(make("p", { class: "tools" }, button));
    pre.after(view);
    button.addEventListener("click", () => {
      const on = pressed(button, button.getAttribute("aria-pressed") !== "true");
      if (on && !view.childElementCount) view.append(folded(JSON.parse(pre.textContent), null, 0));
      pre.hidden = on;
      view.hidden = !on;
    });
  }
}

function startHistory(box) {
  const place = box.querySelector(".turns");
  box.addEventListener("toggle", async () => {
    if (!box.open || place.dataset.full) return;
    place.dataset.full = "yes";
    try {
      const { system, turns } = await load(box.dataset.file, "history");
      const text = (name, held) => make("pre", { class: "text", tabindex: "0", role: "region", "aria-label": name }, held);
      const steps = box.dataset.turns.split(",").filter(Boolean);
      const parts = !steps.length ? [text("System prompt", system)] : system ? [make("details", {}, make("summary", {}, `System prompt, ${counted(system.length, "character")}`), text("System prompt", system))] : [];
      steps.forEach((at, number) => {
        const [said, observed] = turns[Number(at)];
        parts.push(make("h3", {}, `Turn ${number + 1}`), text(`Turn ${number + 1}: action`, said));
        parts.push(make("details", {}, make("summary", {}, `Observation, ${counted(observed.length, "character")}`), text(`Turn ${number + 1}: observation`, observed)));
      });
      place.replaceChildren(...parts);
    } catch (problem) {
      place.replaceChildren(make("p", { class: "failure" }, `The file ${problem.message} could not be loaded.`));
      delete place.dataset.full;
    }
  });
}

function startSample(page) {
  const list = remembered();
  const at = list && list.filtered ? list.pages.indexOf(page) : -1;
  if (list && list.hash) by("to-list").hash = list.hash;
  if (at >= 0) {
    by("place").textContent = `${at + 1} of ${list.pages.length} in your list`;
    const steps = by("place").parentElement;
    const link = (id, name, other) => other === undefined ? make("span", { class: "soft" }, name) : make("a", { id, rel: id, href: `${encodeURIComponent(other)}.html` }, name);
    steps.firstElementChild.replaceWith(link("prev", "← Previous", list.pages[at - 1]));
    steps.lastElementChild.replaceWith(link("next", "Next →", list.pages[at + 1]));
  }
  if (by("diff")) startDiff(by("diff"));
  if (by("history")) startHistory(by("history"));
  startJson();
  const nodes = by("node-table");
  if (nodes) toggle("all-nodes", (on) => nodes.classList.toggle("all", on));
  const keys = { j: "next", ArrowRight: "next", k: "prev", ArrowLeft: "prev", d: "only", w: "blanks", l: "to-list" };
  document.querySelector(".keys").hidden = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, select, textarea")) return;
    if (event.key.startsWith("Arrow") && event.target.closest("pre, .scroll, .diff, .switch")) return; // it scrolls there
    const target = event.key === "s" ? (by("side") && by("side").getAttribute("aria-pressed") === "true" ? by("inline") : by("side")) : by(keys[event.key] || "");
    if (target) target.click();
  });
}

const heading = document.querySelector("h1[data-page]");
if (heading) startSample(heading.dataset.page);
