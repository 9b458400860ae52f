"use strict";
// A click on a column's head sorts by it; another click turns the order round. Cells without a value stay last.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const head = button.closest("th"), table = head.closest("table"), body = table.tBodies[0];
    const column = head.cellIndex, numeric = head.dataset.kind === "number";
    const down = head.getAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : numeric;
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent.trim();
    const compare = (a, b) => {
      if (a === "" || b === "") return (a === "") - (b === "");
      const order = numeric ? a - b : a.localeCompare(b, undefined, { numeric: true });
      return down ? -order : order;
    };
    body.append(...[...body.rows].sort((a, b) => compare(value(a), value(b))));
  });
}
// What is folded would be missing on paper.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => { part.open = true; }));
