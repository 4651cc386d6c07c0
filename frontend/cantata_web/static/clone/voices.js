// The voices that were uploaded: saving one, and deleting one that may be deleted from here.

const CONSENTS = "v1/audio/voices/consents";
const TOKENS = "deletion-tokens";

export class UploadedVoices {
  #server;
  #store;

  /** @param {BrowserStore} store keeps the tokens that delete the voices of this browser */
  constructor(server, store) {
    this.#server = server;
    this.#store = store;
  }

  /** A server with keys lets every key delete; one without lets the uploader, who has the token. */
  mayDelete(id) {
    return this.#server.hasKey || this.#tokens[id] !== undefined;
  }

  /** Resolves with what the server asks for beside the tick. */
  askForConsent() {
    return this.#server.json(CONSENTS, { method: "POST" });
  }

  /**
   * @param {{name, sample, said, agreement}} voice `sample` is a Blob; the speaker has consented,
   *   and `agreement` has the fields that the server asks for beside that
   * @returns {Promise<boolean>} whether the browser will remember that the voice is its own
   */
  async save({ name, sample, said, agreement }) {
    const form = new FormData();
    form.append("name", name);
    form.append("consent", "true");
    form.append("audio_sample", sample, sample.name ?? "recording");
    if (said !== "") form.append("ref_text", said);
    for (const [field, value] of Object.entries(agreement)) form.append(field, value);
    const saved = await this.#server.json("v1/audio/voices", { method: "POST", body: form });
    return this.#store.set(TOKENS, { ...this.#tokens, [saved.id]: saved.deletion_token });
  }

  async delete(id) {
    const { [id]: token, ...others } = this.#tokens;
    const headers = token === undefined ? {} : { "X-Deletion-Token": token };
    const path = `v1/audio/voices/${encodeURIComponent(id)}`;
    await this.#server.request(path, { method: "DELETE", headers });
    this.#store.set(TOKENS, others);
  }

  get #tokens() {
    return this.#store.get(TOKENS, {});
  }
}
