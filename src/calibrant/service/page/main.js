import { about } from "./api.js";
import * as decide from "./decide.js";
import * as sheet from "./sheet.js";

try {
  const run = await about();
  document.title = `${run.name} · calibrant`;
  document.getElementById("about").textContent = `${run.name}, ${run.labels.length} classes`;
  document.getElementById("foot").textContent = `Method ${run.method}, run ${run.run}.`;
  decide.start(run);
  sheet.start(run);
} catch (error) {
  document.getElementById("problem").textContent = error.message;
}
