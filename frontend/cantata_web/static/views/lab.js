// The tab of those who run a server: many streams at a time, and what the server says of itself
// meanwhile.

import { modalityWords } from "../offer/words.js";
import { element } from "./elements.js";
import { MetricsView } from "./metrics.js";
import { ParallelView } from "./parallel.js";

export class LabView {
  #parallel;
  #metrics;

  constructor(root, { server, settings, choices, catalogue }) {
    const find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#parallel = new ParallelView(root, { server, settings });
    this.#metrics = new MetricsView(root, server);
    const show = () => {
      find("parallel").hidden = choices.models.length === 0; // nothing that could speak
      find("models").replaceChildren(...catalogue.models.map(row));
    };
    for (const list of [choices, catalogue]) list.addEventListener("change", show);
    show();
  }

  get streams() {
    return this.#parallel.streams;
  }

  stop() {
    this.#parallel.stop();
  }

  /** @param {boolean} watching whether the server's figures are asked for */
  watch(watching) {
    this.#metrics.watch(watching);
  }
}

function row({ id, input_modalities: takes, output_modalities: makes }) {
  const made = element("tr");
  const name = element("th", id);
  name.scope = "row";
  made.append(name, element("td", modalityWords(takes)), element("td", modalityWords(makes)));
  return made;
}
