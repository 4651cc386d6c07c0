// The served models: what each takes and makes, as /v1/models lists them.

/** Dispatches "change" when the list has been read again. */
export class Catalogue extends EventTarget {
  /** Entries of /v1/models. */
  models = [];
  #server;

  constructor(server) {
    super();
    this.#server = server;
  }

  async load() {
    const { data } = await this.#server.json("v1/models");
    this.models = data;
    this.dispatchEvent(new Event("change"));
  }

  /** Those that draw; their `images` are their limits. */
  get drawing() {
    return this.models.filter(({ images }) => images !== null && images !== undefined);
  }

  /** Those that answer messages. */
  get answering() {
    return this.models.filter(({ input_modalities: takes, output_modalities: makes }) =>
      takes.includes("text") && makes.includes("text"));
  }

  /** Those that answer what they hear. */
  get hearing() {
    return this.answering.filter(({ input_modalities: takes }) => takes.includes("audio"));
  }

  /** Those that write down what they hear; their `transcription` says which languages and files. */
  get listening() {
    return this.models.filter(({ transcription }) => Boolean(transcription));
  }
}
