// CSV as RFC 4180 has it, with any line ends, and with commas, semicolons or tabs between the cells.

export function separatorOf(text) {
  // The one that the first line has most of, quoted cells left out.
  const count = { ",": 0, ";": 0, "\t": 0 };
  let quoted = false;
  for (const c of text) {
    if (c === '"') quoted = !quoted;
    else if (!quoted && (c === "\n" || c === "\r")) break;
    else if (!quoted && c in count) count[c] += 1;
  }
  return Object.keys(count).reduce((best, c) => (count[c] > count[best] ? c : best), ",");
}

export function parse(text, separator = separatorOf(text)) {
  const rows = [];
  let row = [], cell = "", quoted = false, line = 1, opened = 0, begun = false;
  const endCell = () => { row.push(cell); cell = ""; begun = false; };
  const endRow = () => {
    const empty = !row.length && !begun; // such a line is no row; a quoted nothing is one
    endCell();
    if (!empty) rows.push(row);
    row = [];
  };
  for (let i = text.charCodeAt(0) === 0xfeff ? 1 : 0; i < text.length; i += 1) {
    const c = text[i];
    if (c === "\n" || (c === "\r" && text[i + 1] !== "\n")) line += 1;
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') { cell += '"'; i += 1; }
      else quoted = false;
    } else if (c === '"' && !begun) { quoted = true; begun = true; opened = line; }
    else if (c === separator) endCell();
    else if (c === "\n") endRow();
    else if (c === "\r") { if (text[i + 1] === "\n") i += 1; endRow(); if (text[i] === "\n") line += 1; }
    else { cell += c; begun = true; }
  }
  if (quoted) throw new Error(`The quote that opens on line ${opened} is never closed.`);
  if (cell !== "" || row.length || begun) endRow();
  return rows;
}

export function write(rows, separator = ",") {
  const quote = (cell) =>
    cell.includes(separator) || /["\r\n]|^\s|\s$/.test(cell) || cell === "\ufeff" ? `"${cell.replaceAll('"', '""')}"` : cell;
  // A row of one empty cell would read as no row.
  return rows.map((row) => (row.length === 1 && row[0] === "" ? '""' : row.map(quote).join(separator)) + "\r\n").join("");
}
