// The leaderboard: sorting, filters, and the view of one model under #model=SLUG.

const data = JSON.parse(document.getElementById("data").textContent);
const board = document.getElementById("board");
const view = document.getElementById("model");
const told = document.getElementById("told");
const DASH = "–";
const title = document.title;

const fixed = (value, decimals = 2) => (value === null || value === undefined ? DASH : value.toFixed(decimals));
const whole = (value) => (value === null || value === undefined ? DASH : value.toLocaleString("en"));
const share = (value) => (value === null || value === undefined ? DASH : value === 1 ? "100 %" : Math.min(100 * value, 99.9).toFixed(1) + " %");
const range = (bounds, decimals = 1) => (bounds ? `${bounds[0].toFixed(decimals)} to ${bounds[1].toFixed(decimals)}` : DASH);

// --- tables ---

function sortable(section) {
  const heads = [...section.querySelectorAll("thead tr > *")];
  const body = section.querySelector("tbody");
  const first = [...body.rows];
  heads.forEach((head, column) => {
    if (head.tagName !== "TH") return;
    const name = head.textContent;
    const text = column === 1 || column === 2;
    const rising = text || column === 0;
    const button = make("button", { type: "button", class: "sort" }, name);
    head.replaceChildren(button);
    if (name === "Overall") head.setAttribute("aria-sort", "descending");
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const up = before ? before !== "ascending" : rising;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const keys = new Map(first.map((row) => [row, text ? row.cells[column].textContent.toLowerCase() : parseFloat(row.cells[column].textContent)]));
      const missing = (key) => key === "" || Number.isNaN(key);
      const sorted = [...first].sort((a, b) => {
        const [x, y] = [keys.get(a), keys.get(b)];
        if (missing(x) || missing(y)) return missing(x) - missing(y);
        return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
      });
      body.append(...sorted);
      told.textContent = `Sorted by ${name}, ${up ? "ascending" : "descending"}.`;
    });
  });
  const button = section.querySelector(".columns");
  button.hidden = false;
  button.addEventListener("click", () => {
    const wide = section.classList.toggle("wide");
    button.setAttribute("aria-pressed", wide);
  });
}

function bars(section, { scale: [first, last] }) {
  const x = (value) => (Math.min(1, Math.max(0, (value - first) / (last - first))) * 100).toFixed(1);
  for (const row of section.querySelector("tbody").rows) {
    const { overall, interval } = data.entries[row.querySelector("a").hash.slice(7)];
    const [low, high] = interval || [overall, overall];
    row.querySelector(".b").append(draw("svg", { class: "bar", viewBox: "0 0 100 10", "aria-hidden": "true" },
      draw("path", { d: `M${x(low)} 5H${x(high)}` }),
      draw("circle", { cx: x(overall), cy: "5", r: "3.5" })));
  }
}

function filter() {
  const words = document.getElementById("words").value.toLowerCase().split(/\s+/).filter(Boolean);
  const table = document.getElementById("table").value;
  const statuses = [...document.querySelectorAll("[name=status]:checked")].map((box) => box.value);
  let shown = 0;
  let all = 0;
  for (const section of sections) {
    let here = 0;
    for (const row of section.querySelector("tbody").rows) {
      const name = row.cells[1].textContent.toLowerCase();
      const fits = (!table || table === section.id) && statuses.includes(row.dataset.status) && words.every((word) => name.includes(word));
      row.hidden = !fits;
      here += fits;
      all += 1;
    }
    section.hidden = !here;
    shown += here;
  }
  told.textContent = shown === all ? "" : shown ? `${shown} of ${counted(all, "entry", "entries")}.` : "No entry fits; clear a filter to see more.";
}

const sections = [...document.querySelectorAll("section.group")];
sections.forEach((section, place) => {
  sortable(section);
  bars(section, data.groups[place]);
});
const form = document.getElementById("filters");
form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
// A browser may fill the form again when a page is reloaded.
if (form.querySelector("#words").value || form.querySelector("#table").value || form.querySelector("[name=status]:not(:checked)")) filter();

// --- one model ---

function table(caption, head, rows) {
  const [first, ...others] = head;
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    make("table", {},
      make("caption", { class: "hidden-text" }, caption),
      make("thead", {}, make("tr", {}, make("th", { scope: "col", class: "t" }, first), others.map((name) => make("th", { scope: "col" }, name)))),
      make("tbody", {}, rows.map(([name, ...cells]) => make("tr", {}, make("th", { scope: "row" }, name), cells.map((cell) => make("td", {}, String(cell))))))));
}

function list(items) {
  const rows = items.filter(([, value]) => value !== undefined && value !== null && value !== "");
  return make("dl", { class: "list" }, rows.map(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]));
}

function link(address, text) {
  return /^https?:\/\//.test(address || "") ? make("a", { href: address, rel: "noopener noreferrer nofollow" }, text) : text;
}

function byDomain(entry, group) {
  return group.domains.map((name, place) => ({ name, place })).filter(({ place }) => entry.scores[place] !== null);
}

function profile(entry, group) {
  const [width, left, right, step, top] = [560, 96, 64, 27, 22];
  const known = byDomain(entry, group);
  const others = Object.values(data.entries).filter((one) => one.g === entry.g && one !== entry);
  const height = top + known.length * step + 8;
  const x = (value) => (left + (Math.min(100, Math.max(0, value)) / 100) * (width - left - right)).toFixed(1);
  const told = known.map(({ name, place }) => `${name} ${fixed(entry.scores[place], 1)}`).join(", ");
  const marks = [];
  for (let value = 0; value <= 100; value += 20) {
    marks.push(draw("line", { class: "grid", x1: x(value), x2: x(value), y1: top, y2: height }));
    marks.push(draw("text", { class: "tick", x: x(value), y: 14, "text-anchor": "middle" }, String(value)));
  }
  marks.push(draw("line", { class: "overall", x1: x(entry.overall), x2: x(entry.overall), y1: top, y2: height }));
  known.forEach(({ name, place }, number) => {
    const y = top + number * step + step / 2;
    const bounds = (entry.intervals || [])[place];
    for (const other of others) {
      const at = other.scores[place];
      if (at !== null) marks.push(draw("line", { class: "other", x1: x(at), x2: x(at), y1: y - 6, y2: y + 6 }));
    }
    marks.push(draw("text", { x: left - 12, y: y + 4.5, "text-anchor": "end" }, name));
    if (bounds) marks.push(draw("line", { class: "whisker", x1: x(bounds[0]), x2: x(bounds[1]), y1: y, y2: y }));
    marks.push(draw("circle", { cx: x(entry.scores[place]), cy: y, r: 5 }));
    marks.push(draw("text", { x: width - 8, y: y + 4.5, "text-anchor": "end" }, fixed(entry.scores[place], 1)));
  });
  const label = `Scores by domain: ${told}. Dashed line: overall ${fixed(entry.overall, 1)}.`;
  return draw("svg", { class: "profile", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, marks);
}

function domainTable(entry, group) {
  const { counts, intervals } = entry;
  const coverage = counts ? counts.map((count) => count && count[0] / count[1]) : entry.coverage;
  const head = ["Domain", "Score", intervals && "95 % interval", coverage && "Coverage", counts && "Scored", counts && "Trajectories"];
  const rows = byDomain(entry, group).map(({ name, place }) => {
    const count = counts && counts[place];
    return [
      name,
      fixed(entry.scores[place]),
      ...(intervals ? [range(intervals[place])] : []),
      ...(coverage ? [share(coverage[place])] : []),
      ...(counts ? [count ? `${whole(count[0])} / ${whole(count[1])}` : DASH, count ? whole(count[2]) : DASH] : []),
    ];
  });
  return table("Scores by domain", head.filter(Boolean), rows);
}

function readingsPart(entry, group) {
  if (!entry.readings) return null;
  const columns = [];
  for (const parse of ["strict", "official"]) {
    for (const policy of ["exclude", "floor"]) if (entry.readings[parse]) columns.push([parse, policy]);
  }
  const names = ["Overall, macro", "Overall, micro", ...group.domains];
  const rows = names.map((name, place) => [name, ...columns.map(([parse, policy]) => fixed((entry.readings[parse][policy] || entry.readings[parse].exclude)[place]))]);
  return make("div", {},
    make("h2", {}, "Both readings, both failure policies"),
    make("p", { class: "soft small" }, `The entry is headed by ${entry.parse}, ${entry.policy}, macro. exclude leaves failed samples out, floor counts them 0.`),
    table("Totals by reading and failure policy", ["Domain", ...columns.map((pair) => pair.join(", "))], rows));
}

function dimensionsPart(entry, group) {
  if (!entry.dimensions) return null;
  const cell = (numbers, place) => fixed(numbers[2 * place], 1) + (numbers[2 * place + 1] ? ` ± ${fixed(numbers[2 * place + 1], 1)}` : "");
  const rows = ["Overall, macro", ...group.domains].map((name, row) => [name, ...group.dimensions.map((_, place) => cell(entry.dimensions[row], place))]);
  const names = group.dimensions.map((name) => name[0].toUpperCase() + name.slice(1));
  return make("div", {}, make("h2", {}, "Dimensions"), table("Scores by domain and dimension", ["Domain", ...names], rows));
}

function rulesPart(entry, group) {
  if (!entry.rules) return null;
  const { overall, skill, scores, skills } = entry.rules;
  const rows = [["Overall, macro", fixed(overall[0]), fixed(skill[0], 3)], ...group.domains.map((name, place) => [name, fixed(scores[place]), fixed(skills[place], 3)])];
  return make("div", {},
    make("h2", {}, "By rules alone"),
    make("p", { class: "soft small" }, `Of the same predictions; never part of a judge's score. Skill: 0 is copying the observation before, 1 the reference. 95 % intervals: score ${range(overall[1])}, skill ${range(skill[1], 3)}.`),
    table("Rule score and skill by domain", ["Domain", "Rule score", "Skill"], rows));
}

function costsPart(entry) {
  if (!entry.costs) return null;
  const usd = (value) => (value === null ? "unknown" : fixed(value, value && value < 0.1 ? 4 : 2));
  const rows = entry.costs.stages.map(([name, ...rest]) => [name, ...rest.slice(0, 4).map(whole), usd(rest[4])]);
  const thousand = entry.costs.thousand;
  const notes = [thousand === null ? "What the predictions cost is not known." : `${usd(thousand)} USD for 1,000 predictions, the model alone.`];
  if (entry.costs.cached) notes.push(`${whole(entry.costs.cached)} answers came from a cache and are not in this table.`);
  return make("div", {},
    make("h2", {}, "Cost"),
    make("p", { class: "soft small" }, notes.join(" ")),
    table("Tokens and cost by stage", ["Stage", "Prompt tokens", "Cached", "Completion", "Reasoning", "USD"], rows));
}

function originPart(entry, group) {
  const run = entry.run || {};
  const source = entry.source;
  const by = entry.submitter;
  return make("div", {},
    make("h2", {}, "Where it comes from"),
    list([
      ["Source", source && [source.title, ", ", source.location, " (", link(source.url, source.identifier), ")"]],
      ["Note", entry.note],
      ["Submitter", by && [link(by.url, by.name), by.contact ? `, ${by.contact}` : ""]],
      ["Run", run.date && run.date.slice(0, 16).replace("T", " ") + " UTC"],
      ["Model string", run.model],
      ["Sampling", data.texts[run.sampling]],
      ["Samples", run.samples && `${whole(run.samples)}${run.epochs > 1 ? `, ${run.epochs} answers each` : ""}`],
      ["Verdicts each", run.repeats && run.repeats.join(", ")],
      ["Judge served as", run.served && run.served.map((place) => data.texts[place]).join(", ")],
      ["Harness", data.texts[run.harness]],
      ["Scored by", run.scored],
      ["Rules, digest", entry.rules && entry.rules.definition],
      ["Bundle", entry.bundle && [make("span", { class: "hash" }, entry.bundle.sha256), entry.bundle.url ? [" ", link(entry.bundle.url, "open")] : ""].flat()],
      ["Verified", entry.verified],
      ...group.shared,
    ]));
}

function show(slug) {
  const entry = data.entries[slug];
  const group = data.groups[entry.g];
  const rank = entry.rank === undefined ? `no rank: ${entry.why}` : `rank ${entry.rank} in its table`;
  const name = make("h1", { id: "model-name", tabindex: "-1" }, entry.name);
  view.replaceChildren(
    make("p", {}, make("a", { href: `#g${entry.g + 1}`, id: "back" }, "← All entries")),
    name,
    make("p", { class: "headline" },
      make("span", { class: "score" }, fixed(entry.overall)),
      entry.interval ? make("span", { class: "soft" }, `95 % interval ${range(entry.interval)}`) : null,
      make("span", { class: "soft" }, rank),
      make("span", { class: `badge ${entry.status}` }, entry.status)),
    make("dl", { class: "facts" }, [["Score", group.kind], ...group.facts].map(([key, value]) => make("div", {}, make("dt", {}, key), make("dd", {}, value)))),
    entry.computed === undefined || Math.abs(entry.computed - entry.overall) < 0.011 ? "" : make("p", { class: "soft small" }, `Stated by the source; the mean of its domains is ${fixed(entry.computed)}.`),
    make("div", { class: "halves" },
      make("div", {},
        make("h2", {}, "Domains"),
        profile(entry, group),
        make("p", { class: "soft small" }, "Bars: 95 % intervals. Dashed: overall. Small marks: the other entries of its table.")),
      make("div", { class: "plain" }, domainTable(entry, group)),
      dimensionsPart(entry, group),
      readingsPart(entry, group),
      rulesPart(entry, group),
      costsPart(entry)),
    entry.failures ? make("p", { class: "soft small" }, `Without a score: ${entry.failures.join("; ")}.`) : "",
    originPart(entry, group));
  document.title = `${entry.name} · ${title}`;
  board.hidden = true;
  view.hidden = false;
  scrollTo(0, 0);
  name.focus({ preventScroll: true });
}

let last = null;

function route() {
  if (location.hash === "#main") return; // the link past the header
  const slug = location.hash.startsWith("#model=") ? location.hash.slice(7) : null;
  if (slug !== null && Object.hasOwn(data.entries, slug)) {
    last = slug;
    show(slug);
    return;
  }
  const back = !view.hidden;
  view.hidden = true;
  view.replaceChildren();
  board.hidden = false;
  document.title = title;
  if (slug !== null) told.textContent = "There is no such entry on this page.";
  if (back && last !== null) {
    const row = [...board.querySelectorAll("tbody a")].find((one) => one.hash === `#model=${last}`);
    if (row && !row.closest("[hidden]")) row.focus();
  }
}

addEventListener("hashchange", route);
route();
