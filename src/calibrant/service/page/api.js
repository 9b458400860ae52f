// Ask the service: with the token once it is known, and again where it says "later".

let token = null;
const form = document.getElementById("token");
const wrong = document.getElementById("token-wrong");

export class Problem extends Error {}

function askForToken() {
  form.hidden = false;
  if (token !== null) wrong.textContent = "This token is wrong.";
  document.getElementById("secret").focus();
  return new Promise((resolve) => {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      token = document.getElementById("secret").value;
      wrong.textContent = "";
      form.hidden = true;
      resolve();
    }, { once: true });
  });
}

let asking = null; // one form for all requests that wait for it

async function call(path, options = {}) {
  for (;;) {
    const headers = { ...options.headers, ...(token === null ? {} : { Authorization: `Bearer ${token}` }) };
    let response;
    try {
      response = await fetch(path, { ...options, headers });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Problem("The service does not answer. Is it still running?");
    }
    if (response.ok) return response.json();
    if (response.status === 401) {
      asking ??= askForToken().finally(() => { asking = null; });
      await asking;
    } else if (response.status === 503) {
      await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("Retry-After") ?? 1)));
      options.signal?.throwIfAborted();
    } else {
      const told = await response.json().catch(() => ({}));
      throw new Problem(told.detail ?? `The service answered ${response.status}.`);
    }
  }
}

export const about = () => call("/run");

export async function predict(texts, signal) {
  const told = await call("/predict", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ texts }),
    signal,
  });
  return told.answers;
}
