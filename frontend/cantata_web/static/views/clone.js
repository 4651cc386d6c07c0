// The tab that makes a voice from a recording, and deletes it.

import { SpeechError } from "../api/errors.js";
import { Recorder } from "../clone/recorder.js";
import { LevelLine } from "./levelline.js";
import { statusLine } from "./status.js";

const MOST_SECONDS = 15; // more is not used by the server
const MOST_BYTES = 10 * 2 ** 20;

export class CloneView {
  #server;
  #choices;
  #tryVoice;
  #root;
  #show;
  #recorder = new Recorder(MOST_SECONDS);
  #line;
  #sample = null; // the recording, as a Blob

  /** @param {(id) => void} tryVoice goes where the voice can speak */
  constructor(root, { server, choices, tryVoice }) {
    this.#root = root;
    this.#server = server;
    this.#choices = choices;
    this.#tryVoice = tryVoice;
    this.#show = statusLine(this.#find("clone-status"));
    this.#line = new LevelLine(this.#find("record-level"));
    this.#find("record").addEventListener("click", () => void this.#record());
    this.#recorder.addEventListener("level", ({ detail }) => this.#showLevel(detail));
    this.#field("sample").addEventListener("change", ({ target }) => this.#take(target.files[0]));
    this.#find("clone-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.#attempt(() => this.#save());
    });
    choices.addEventListener("change", () => this.#refresh());
  }

  #find(role) {
    return this.#root.querySelector(`[data-role="${role}"]`);
  }

  #field(name) {
    return this.#root.querySelector(`#cantata-${name}`);
  }

  async #record() {
    if (this.#recorder.recording) {
      this.#recorder.stop();
      return;
    }
    await this.#attempt(async () => {
      await this.#recorder.start();
      this.#line.clear();
      this.#showRecording(true);
      this.#show("Recording. Speak a sentence or two, then stop.");
      this.#take(await this.#recorder.untilStopped());
      this.#showRecording(false);
      this.#field("sample").value = "";
      this.#show("Recorded. Listen to it, then give the voice a name.");
    });
  }

  #showRecording(recording) {
    const button = this.#find("record");
    button.setAttribute("aria-pressed", String(recording));
    button.querySelector("span").textContent = recording ? "Stop recording" : "Record";
  }

  #showLevel({ seconds, peak }) {
    this.#line.append(peak, seconds / MOST_SECONDS);
    this.#find("record-clock").textContent = `${seconds.toFixed(1)} s`;
  }

  #take(sample) {
    const player = this.#find("reference");
    if (player.src) URL.revokeObjectURL(player.src);
    this.#sample = sample ?? null;
    player.hidden = this.#sample === null;
    if (this.#sample !== null) player.src = URL.createObjectURL(this.#sample);
    else player.removeAttribute("src");
  }

  get #missing() {
    if (this.#sample === null) return ["sample", "Record something, or choose a file."];
    if (this.#sample.size > MOST_BYTES) return ["sample", "The file is too large: at most 10 MiB."];
    if (this.#field("voice-name").value.trim() === "") return ["voice-name", "Name the voice."];
    if (!this.#field("consent").checked) {
      return ["consent", "Without the speaker's consent the voice cannot be saved."];
    }
    return null;
  }

  async #save() {
    if (this.#missing !== null) {
      const [field, sentence] = this.#missing;
      this.#field(field).focus();
      throw new SpeechError(sentence);
    }
    const form = new FormData();
    const name = this.#field("voice-name").value.trim();
    form.append("name", name);
    form.append("consent", "true");
    form.append("audio_sample", this.#sample, this.#sample.name ?? "recording");
    const said = this.#field("said").value.trim();
    if (said !== "") form.append("ref_text", said);
    this.#show("Saving…");
    await this.#server.request("v1/audio/voices", { method: "POST", body: form });
    this.#find("clone-form").reset();
    this.#take(null);
    await this.#choices.load();
    this.#show(`${name} is saved.`);
  }

  async #delete(voice) {
    await this.#server.request(`v1/audio/voices/${encodeURIComponent(voice.id)}`, {
      method: "DELETE",
    });
    await this.#choices.load();
    this.#show(`${voice.name} is deleted.`);
    this.#field("voice-name").focus(); // the button that had it is gone
  }

  async #attempt(act) {
    try {
      await act();
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#show(error.message, true);
    }
  }

  #refresh() {
    const notice = this.#find("no-references");
    const names = this.#choices.models.map(({ name }) => name).join(", ");
    notice.hidden = this.#choices.followsReferences;
    notice.textContent =
      `This server's model (${names}) speaks with its own voices only: it cannot follow a ` +
      "recording. A voice that you save here is kept, and can be spoken with once the server " +
      "runs a model that can.";
    const { uploaded } = this.#choices;
    const empty = document.createElement("li");
    empty.textContent = "None yet.";
    const entries = uploaded.length === 0 ? [empty] : uploaded.map((voice) => this.#entry(voice));
    this.#find("saved").replaceChildren(...entries);
  }

  #entry(voice) {
    const entry = document.createElement("li");
    const name = document.createElement("strong");
    name.textContent = voice.name;
    const made = document.createElement("span");
    made.textContent = new Date(voice.created_at * 1000).toLocaleString();
    const speak = button("Speak with it", `Speak with ${voice.name}`, () =>
      this.#tryVoice(voice.id),
    );
    speak.disabled = voice.model === null;
    const remove = button("Delete", `Delete ${voice.name}`, () =>
      void this.#attempt(() => this.#delete(voice)),
    );
    entry.append(name, made, speak, remove);
    return entry;
  }
}

function button(text, label, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.setAttribute("aria-label", label);
  element.addEventListener("click", act);
  return element;
}
