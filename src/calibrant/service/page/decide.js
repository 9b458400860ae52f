// What a person types, and the decision beside it.

import { predict } from "./api.js";
import { breakable, percent, stranger } from "./words.js";

const at = (id) => document.getElementById(id);
const PAUSE = 120; // ms after the last key

export function start(run) {
  const text = at("text"), card = at("decision");
  let timer, request;

  const ask = async () => {
    request?.abort();
    const asked = text.value.slice(0, run.limits.characters);
    if (!asked.trim()) { empty(card); return; }
    request = new AbortController();
    const mine = request;
    card.dataset.waiting = "";
    try {
      const [answer] = await predict([asked], mine.signal);
      at("problem").textContent = "";
      show(card, answer, run, asked.length < text.value.length);
    } catch (error) {
      if (error.name === "AbortError") return;
      at("problem").textContent = error.message;
    }
    if (mine === request) delete card.dataset.waiting;
  };
  text.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(ask, PAUSE); });
  examples(run, (example) => { text.value = example; text.focus(); ask(); });
  if (text.value) ask(); // what the browser kept over a reload
}

function examples(run, pick) {
  at("try").hidden = run.examples.length === 0;
  at("examples").replaceChildren(...run.examples.map((example) => {
    const item = document.createElement("li"), button = document.createElement("button");
    const shown = document.createElement("span"); // two lines of it
    shown.textContent = example;
    button.type = "button";
    button.append(shown);
    button.addEventListener("click", () => pick(example));
    item.append(button);
    return item;
  }));
}

function empty(card) {
  card.dataset.state = "empty";
  delete card.dataset.waiting;
  at("said").textContent = "Nothing yet";
  at("why").textContent = "Type a text, or pick an example.";
  at("problem").textContent = "";
  at("details").hidden = true;
}

function show(card, answer, run, shortened) {
  card.dataset.state = answer.abstain ? "abstained" : "answered";
  at("said").replaceChildren(answer.abstain ? "I don’t know" : breakable(answer.label));
  at("why").replaceChildren(...reason(answer));
  if (answer.cut || shortened) at("why").append(" The text is longer than the model reads: only its beginning counts.");
  at("details").hidden = false;

  const sure = 100 * answer.confidence;
  at("confidence-value").textContent = percent(answer.confidence);
  at("confidence").setAttribute("aria-valuenow", sure.toFixed(1));
  at("confidence").setAttribute("aria-valuetext", `${percent(answer.confidence)}, ${rule(run)}`);
  at("confidence").querySelector(".fill").style.width = `${sure}%`;
  at("confidence").querySelector(".tick").style.left = `${100 * run.threshold}%`;
  at("confidence").querySelector(".tick").hidden = run.threshold === 0;
  at("confidence-note").textContent = rule(run);

  at("familiarity-part").hidden = answer.familiarity === null;
  if (answer.familiarity !== null) {
    const strange = 100 * (1 - answer.familiarity);
    at("familiarity-value").textContent = stranger(answer.familiarity);
    at("familiarity").setAttribute("aria-valuenow", strange.toFixed(1));
    at("familiarity").setAttribute("aria-valuetext", stranger(answer.familiarity));
    at("familiarity").querySelector(".dot").style.left = `${strange}%`;
    at("familiarity").querySelector(".zone").style.width = `${100 * (run.unfamiliar_below ?? 0)}%`;
  }
  at("next-part").hidden = answer.next.length === 0;
  at("next").replaceChildren(...answer.next.map(({ label, probability }) => {
    const item = document.createElement("li"), name = breakable(label);
    const value = document.createElement("span"), bar = document.createElement("i");
    value.textContent = percent(probability);
    bar.style.width = `${100 * probability}%`;
    item.append(name, value, bar);
    return item;
  }));
}

function rule(run) {
  if (run.threshold === 0) return "It answers everything.";
  const promise = run.risk === null ? "" : `, so that at most ${percent(run.risk, 0)} of its answers are wrong`;
  return `It answers from ${percent(run.threshold, 0)} on${promise}.`;
}

function reason(answer) {
  if (!answer.abstain) return [`It is ${percent(answer.confidence, 0).replace("> ", "more than ")} sure.`];
  const guess = document.createElement("b");
  guess.append(breakable(answer.label));
  const why = answer.reason === "unfamiliar"
    ? "The text is unfamiliar: unlike what the model was trained on."
    : "The model is unsure.";
  return [`${why} Its best guess: `, guess, "."];
}
