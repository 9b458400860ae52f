// Numbers and decisions in words.

export function percent(share, digits = 1) {
  const value = 100 * share;
  if (share > 0 && share < 1) { // neither 0 % nor 100 % of what is not
    const least = 10 ** -digits;
    if (value < least) return `< ${least} %`;
    if (value > 100 - least) return `> ${(100 - least).toFixed(digits)} %`;
  }
  return `${value.toFixed(digits)} %`;
}

export function stranger(familiarity) {
  const share = Math.floor(1000 * (1 - familiarity) + 1e-9) / 10; // never more than is so
  return share ? `stranger than ${share.toFixed(1)} % of the texts it knows` : "as familiar as any text it knows";
}

// A label that may break after its underscores.
export function breakable(label) {
  const parts = label.split(/(?<=[_./-])/), made = document.createElement("span");
  parts.forEach((part, i) => made.append(...(i ? [document.createElement("wbr"), part] : [part])));
  return made;
}
