// The models that draw: what they make, and whether they can do it yet.

const LOOK_AGAIN_MS = 1_000;

/** Dispatches "change" when the list or `loading` of a model has changed. */
export class Painters extends EventTarget {
  #catalogue;
  #server;
  #running = null; // names of the models whose stages run; null until it was asked for
  #timer = null;

  /** @param {Catalogue} catalogue lists the models */
  constructor(server, catalogue) {
    super();
    this.#server = server;
    this.#catalogue = catalogue;
    catalogue.addEventListener("change", () => this.#tell());
  }

  /** Entries of /v1/models; `images` are their limits. */
  get models() {
    return this.#catalogue.drawing;
  }

  model(id) {
    return this.models.find((model) => model.id === id);
  }

  /** Whether it is known to be loading: some are, when the others can speak already. */
  loading(id) {
    return this.#running !== null && !this.#running.has(id);
  }

  /** Asks which are ready, again and again until all are, or until `rest`. */
  async look() {
    this.rest();
    try {
      const { stages } = await this.#server.json("health");
      this.#running = new Set(stages.map(({ model }) => model));
    } catch {
      return; // the page says by itself that the server is gone, and looks again when it is back
    }
    this.#tell();
    if (this.models.some(({ id }) => this.loading(id))) {
      this.#timer = setTimeout(() => void this.look(), LOOK_AGAIN_MS);
    }
  }

  rest() {
    clearTimeout(this.#timer);
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}
