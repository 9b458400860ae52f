// The OpenAPI description as a page, without a script from elsewhere.

const openapi = await (await fetch("/openapi.json")).json();
document.getElementById("example").textContent =
  `curl ${location.origin}/predict -H 'Content-Type: application/json' \\\n     -d '{"texts": ["My card was swallowed", "Bake it for an hour"]}'`;

const make = (tag, content = "", kind = "") => Object.assign(document.createElement(tag), { textContent: content, className: kind });
const resolve = (schema) => (schema?.$ref ? openapi.components.schemas[schema.$ref.split("/").pop()] : schema);

function typeOf(schema) {
  if (schema.$ref) return schema.$ref.split("/").pop();
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  return schema.type ?? "anything";
}

function table(rows, head) {
  const made = make("table"), top = made.createTHead().insertRow(), body = made.createTBody();
  for (const name of head) top.append(Object.assign(make("th", name), { scope: "col" }));
  for (const cells of rows) {
    const row = body.insertRow();
    cells.forEach((cell, i) => row.insertCell().append(i ? cell : make("code", cell)));
  }
  return made;
}

function fields(title, schema) {
  const found = resolve(schema);
  if (!found?.properties) return [];
  const rows = Object.entries(found.properties).map(([name, of]) => {
    const least = "default" in of && of.default !== null ? ` Default: ${JSON.stringify(of.default)}.` : "";
    return [name, typeOf(of), (resolve(of)?.description ?? of.description ?? "") + least];
  });
  const inner = Object.values(found.properties).map((of) => resolve(of.items)).filter((of) => of?.properties && of.title !== title);
  return [make("h3", title), table(rows, ["field", "type", "meaning"]), ...inner.flatMap((of) => fields(of.title, of))];
}

for (const [path, verbs] of Object.entries(openapi.paths)) {
  for (const [verb, about] of Object.entries(verbs)) {
    const part = make("article", "", "card"), head = make("h2");
    head.append(make("span", verb.toUpperCase(), "verb"), ` ${path}`);
    part.append(head, make("p", `${about.summary}. ${about.description ?? ""}`));
    const body = about.requestBody?.content["application/json"]?.schema;
    if (body) part.append(...fields(resolve(body).title, body));
    const ok = about.responses["200"].content?.["application/json"]?.schema;
    if (ok) part.append(...fields(resolve(ok).title, ok));
    part.append(make("h3", "Status"), table(Object.entries(about.responses).map(([code, of]) => [code, of.description]), ["code", "meaning"]));
    document.getElementById("paths").append(part);
  }
}
