// A tab that the browser fetches when it is first opened: its script, markup and styles.

import { t } from "../texts.js";

/** Dispatches "open" (detail: its view) when that is there. */
export class LateTab extends EventTarget {
  /** Its view, once it is there; null before. */
  view = null;
  #panel;
  #load;
  #opening = null;

  /** @param {() => Promise<(panel) => object>} load fetches what makes its view of the markup */
  constructor(panel, load) {
    super();
    this.#panel = panel;
    this.#load = load;
  }

  /** Resolves with its view; with null if it could not be fetched, which the tab then says. */
  open() {
    this.#opening ??= this.#open();
    return this.#opening;
  }

  async #open() {
    const panel = this.#panel;
    try {
      const { markup, style } = panel.dataset;
      const [text, make] = await Promise.all([fetchText(markup), this.#load(), addStyle(style)]);
      panel.classList.remove("desk");
      // In one task: a control that is there before its view would lose what is done with it.
      panel.innerHTML = text;
      this.view = make(panel);
      this.dispatchEvent(new CustomEvent("open", { detail: this.view }));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // what browsers raise for what they cannot get
      panel.textContent = t("This tab could not be fetched. Choose it again once the server is back.");
      panel.classList.add("desk");
      this.#opening = null;
    }
    return this.view;
  }
}

async function fetchText(url) {
  const response = await fetch(url);
  if (!response.ok) throw new TypeError(url);
  return response.text();
}

function addStyle(href) {
  const link = document.createElement("link");
  Object.assign(link, { rel: "stylesheet", href });
  return new Promise((resolve, reject) => {
    link.addEventListener("load", resolve);
    link.addEventListener("error", () => {
      link.remove();
      reject(new TypeError(href));
    });
    document.head.append(link);
  });
}
