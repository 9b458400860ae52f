// A CSV file: classified, sorted by doubt, filtered, downloaded again with all its columns.

import { predict } from "./api.js";
import { parse, separatorOf, write } from "./csv.js";
import { breakable, percent } from "./words.js";

const at = (id) => document.getElementById(id);
const AT_ONCE = 64, ROWS = 100;
const ADDED = ["label", "confidence", "familiarity", "abstain", "reason", "cut"].map((name) => `calibrant_${name}`);

export function start(run) {
  const drop = at("drop"), input = at("file");
  at("choose").addEventListener("click", () => input.click());
  input.addEventListener("change", () => { if (input.files.length) open(input.files[0], run); input.value = ""; });
  document.addEventListener("dragover", (event) => { event.preventDefault(); drop.classList.add("over"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) open(event.dataTransfer.files[0], run);
  });
}

let sheet = null;

async function open(file, run) {
  sheet?.stop();
  at("file-problem").textContent = "";
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer());
    const separator = separatorOf(text), [header, ...rows] = parse(text, separator);
    if (!rows.length) throw new Error("It has no rows below its header.");
    sheet = new Sheet(file.name, separator, header, rows, run);
    await sheet.classify();
  } catch (error) {
    const what = error instanceof TypeError ? "It is not UTF-8; save it as CSV UTF-8." : error.message;
    at("file-problem").textContent = `${file.name}: ${what}`;
  }
}

class Sheet {
  constructor(name, separator, header, rows, run) {
    Object.assign(this, { name, separator, header, rows, run, shown: ROWS, by: "confidence", up: true });
    this.column = guess(header, rows, run.text_column);
    this.controls = new AbortController(); // of the listeners, which another file's take the place of
    const { signal } = this.controls, on = (id, what, then) => at(id).addEventListener(what, then, { signal });
    at("column").replaceChildren(...header.map((title, i) => new Option(title || `column ${i + 1}`, i, false, i === this.column)));
    on("column", "change", () => { this.column = Number(at("column").value); this.classify(); });
    on("search", "input", () => this.refresh());
    on("show", "change", () => this.refresh());
    on("more", "click", () => { this.shown += 5 * ROWS; this.draw(); });
    on("stop", "click", () => this.request.abort());
    on("download", "click", () => this.download());
    for (const head of at("table").tHead.rows[0].cells) {
      head.firstElementChild.addEventListener("click", () => this.sort(head.dataset.key), { signal });
    }
    at("search").value = "";
    at("show").value = "all";
    at("sheet").hidden = false;
  }

  stop() { this.request?.abort(); this.controls.abort(); }

  async classify() {
    this.request?.abort();
    const request = this.request = new AbortController(), { limits } = this.run;
    this.items = this.rows.map((cells, i) => ({ row: i + 1, cells, text: cells[this.column] ?? "", answer: null }));
    const todo = this.items.filter((item) => item.text.trim());
    this.busy(0, todo.length);
    this.refresh();
    try {
      for (let done = 0; done < todo.length;) {
        const some = portion(todo, done, limits);
        const answers = await predict(some.map(({ sent }) => sent), request.signal);
        some.forEach(({ item, sent }, i) => {
          item.answer = answers[i];
          item.answer.cut ||= sent.length < item.text.length;
        });
        done += some.length;
        this.busy(done, todo.length);
        this.refresh();
      }
    } catch (error) {
      if (error.name !== "AbortError") at("file-problem").textContent = error.message;
    }
    if (request === this.request) this.busy(1, 1);
  }

  busy(done, all) {
    at("progress-part").hidden = at("stop").hidden = done >= all;
    at("progress").value = all ? done / all : 1;
    at("progress-name").textContent = `Classifying: ${done} of ${all}`;
  }

  sort(key) {
    this.up = key === this.by ? !this.up : true;
    this.by = key;
    this.refresh();
  }

  refresh() {
    const wanted = at("search").value.toLowerCase(), kind = at("show").value;
    this.view = this.items.filter((item) => is(item, kind) && (!wanted || spoken(item).includes(wanted)));
    const key = KEYS[this.by], way = this.up ? 1 : -1;
    this.view.sort((a, b) => {
      if ((a.answer === null) !== (b.answer === null) && this.by !== "row") return a.answer === null ? 1 : -1;
      return way * compare(key(a), key(b)) || a.row - b.row;
    });
    this.shown = ROWS;
    this.draw();
  }

  draw() {
    for (const head of at("table").tHead.rows[0].cells) {
      if (head.dataset.key === this.by) head.ariaSort = this.up ? "ascending" : "descending";
      else head.removeAttribute("aria-sort");
    }
    at("table").tBodies[0].replaceChildren(...this.view.slice(0, this.shown).map(line));
    at("more").hidden = this.view.length <= this.shown;
    const rows = (n) => `${n} ${n === 1 ? "row" : "rows"}`, { by, up } = this;
    const order = by === "confidence" ? (up ? ", most doubtful first" : ", surest first") : "";
    at("count").textContent = `${rows(this.view.length)} of ${this.items.length}${order}`;
    at("download").textContent = `Download ${rows(this.view.length)}`;
    at("summary").replaceChildren(...[
      ["answered", (item) => is(item, "answered")],
      ["unsure", (item) => is(item, "unsure")],
      ["unfamiliar", (item) => is(item, "unfamiliar")],
      ["without text", (item) => !item.text.trim()],
    ].flatMap(([name, test]) => {
      const n = this.items.filter(test).length;
      if (!n && name === "without text") return [];
      const item = document.createElement("li"), count = document.createElement("b");
      count.textContent = n;
      item.append(count, name);
      return [item];
    }));
  }

  download() {
    const kept = this.header.map((_, i) => i).filter((i) => !ADDED.includes(this.header[i]));
    const body = this.view.map(({ cells, answer }) => [
      ...kept.map((i) => cells[i] ?? ""),
      ...(answer === null ? ADDED.map(() => "")
        : [answer.label, answer.confidence, answer.familiarity ?? "", answer.abstain, answer.reason ?? "", answer.cut].map(String)),
    ]);
    const content = write([[...kept.map((i) => this.header[i]), ...ADDED], ...body], this.separator);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([content], { type: "text/csv" }));
    link.download = this.name.replace(/(\.[^.]*)?$/, "-decided$1");
    link.click();
    URL.revokeObjectURL(link.href);
  }
}

const KEYS = {
  row: (item) => item.row,
  text: (item) => item.text,
  decision: (item) => (item.answer?.abstain ? "" : item.answer?.label ?? ""),
  // Doubt: what it does not answer comes before what it does.
  confidence: (item) => (item.answer?.confidence ?? 2) - (item.answer?.abstain ? 1 : 0),
  familiarity: (item) => item.answer?.familiarity ?? 2,
};

const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);

function is({ answer }, kind) {
  if (kind === "all") return true;
  if (answer === null) return false;
  if (kind === "cut") return answer.cut;
  if (kind === "answered" || kind === "abstained") return answer.abstain === (kind === "abstained");
  return answer.reason === kind;
}

const spoken = ({ text, answer }) => `${text}\n${answer?.label ?? ""}`.toLowerCase();

function portion(todo, from, limits) {
  const some = [];
  for (let bytes = 0; from + some.length < todo.length && some.length < Math.min(AT_ONCE, limits.texts);) {
    const item = todo[from + some.length], sent = item.text.slice(0, limits.characters);
    bytes += 6 * sent.length; // what JSON makes of a character at most
    if (some.length && bytes > limits.bytes - 100) break;
    some.push({ item, sent });
  }
  return some;
}

function guess(header, rows, trained) {
  for (const name of [trained, "text", "body", "message"]) {
    const i = header.findIndex((title) => title.trim().toLowerCase() === name.toLowerCase());
    if (i >= 0) return i;
  }
  const length = header.map((_, i) => rows.slice(0, 50).reduce((sum, row) => sum + (row[i] ?? "").length, 0));
  return length.indexOf(Math.max(...length));
}

function line({ row, text, answer }) {
  const made = document.createElement("tr"), cell = (kind, ...content) => {
    const td = document.createElement("td");
    td.className = kind;
    td.append(...content);
    made.append(td);
  };
  const element = (tag, content, kind = "") => Object.assign(document.createElement(tag), { textContent: content, className: kind });
  cell("wide number", String(row));
  cell("text", element("span", text));
  if (answer === null) {
    cell("decision-cell", element("small", text.trim() ? "…" : "no text"));
  } else if (answer.abstain) {
    const why = element("small", `${answer.reason}; best guess `);
    why.append(breakable(answer.label));
    cell("decision-cell", element("span", "I don’t know", "dont"), why);
  } else {
    cell("decision-cell", breakable(answer.label));
  }
  if (answer?.cut) made.lastChild.append(element("small", "cut: only its beginning was read"));
  cell("number", answer === null ? "" : percent(answer.confidence));
  cell("wide number", answer?.familiarity == null ? "" : percent(answer.familiarity));
  return made;
}
