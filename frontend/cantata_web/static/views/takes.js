// The last takes: played again, saved, brought back, and compared.

import { canKeep } from "../kept/takes.js";
import { encodeWav } from "../player/wav.js";
import { samePlace } from "../speech/compare.js";
import { State } from "../speech/states.js";
import { decimal, t } from "../texts.js";
import { button, element } from "./elements.js";
import { nameFile, save } from "./save.js";
import { statusLine } from "./status.js";

const SHOWN_CHARACTERS = 70;
const ENDED = new Set([State.DONE, State.STOPPED]);

export class TakesView {
  #find;
  #show;
  #speaker;
  #speak;
  #confirm;
  #takes; // promise of the store
  #listed = [];
  #compared = { A: null, B: null }; // ids
  #playing = null; // the one that is playing
  #next = []; // takes to play after it

  /**
   * @param {SpeakView} speak says what is spoken, and plays takes
   * @param {Promise} takes of `openTakes`
   */
  constructor(root, { speaker, speak, takes, confirm }) {
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#show = statusLine(this.#find("takes-status"));
    this.#speaker = speaker;
    this.#speak = speak;
    this.#takes = takes;
    this.#confirm = confirm;
    speaker.addEventListener("state", () => void this.#follow());
    this.#find("clear-takes").addEventListener("click", () => void this.#clear());
    this.#find("play-both").addEventListener("click", () => void this.#playBoth());
    this.#find("switch").addEventListener("click", () => void this.#switch());
    void this.#open();
  }

  async #open() {
    const { kept } = await this.#takes;
    if (!kept) this.#show(t("This browser keeps no takes: they last until you close the page."));
    await this.#refresh();
  }

  async #follow() {
    const { state, replaying } = this.#speaker;
    if (state === State.WAITING || state === State.LISTENING) this.#leave();
    if (ENDED.has(state) && !replaying) await this.#keep();
    if (ENDED.has(state) && replaying) {
      const next = state === State.DONE ? this.#next.shift() : undefined;
      if (next) await this.#play(next);
      else this.#leave();
    }
  }

  #leave() {
    this.#playing = null;
    this.#next = [];
    this.#showCompared();
  }

  async #keep() {
    const { metrics, words } = this.#speaker;
    const samples = this.#speaker.recording().slice();
    if (samples.length === 0) return;
    if (!canKeep(samples)) {
      this.#show(t("The last take is too long to be kept here. Download it."), true);
      return;
    }
    const { sampleRate, channels, stopped } = metrics;
    const take = {
      ...this.#speak.spoken,
      at: Date.now(),
      words: words.all,
      seconds: samples.length / channels / sampleRate,
      sampleRate,
      channels,
      stopped,
    };
    try {
      await (await this.#takes).add(take, samples);
    } catch {
      this.#show(t("The browser has no room for this take. Download it, or clear the others."), true);
      return;
    }
    await this.#refresh();
  }

  async #refresh() {
    this.#listed = await (await this.#takes).list();
    const [newest, before] = this.#listed;
    const known = (id) => this.#listed.some((take) => take.id === id);
    const compared = this.#compared;
    if (!known(compared.A)) compared.A = before?.id ?? null;
    // Where nobody has chosen: the first take was B, and is A once there are two.
    if (!known(compared.B) || compared.B === compared.A) {
      compared.B = [newest, before].find((take) => take && take.id !== compared.A)?.id ?? null;
    }
    const none = element("li", t("None yet. What you have heard appears here."));
    const entries = this.#listed.map((take) => this.#entry(take));
    this.#find("take-list").replaceChildren(...(entries.length > 0 ? entries : [none]));
    this.#find("clear-takes").disabled = entries.length === 0;
    this.#showCompared();
  }

  #entry(take) {
    const entry = element("li");
    const name = nameOf(take);
    const text = element("q", shortened(take.text));
    const choose = (letter) => {
      const made = button(letter, t("Compare as {letter}: {name}", { letter, name }), () => {
        this.#compared[letter] = take.id;
        this.#showCompared();
      });
      made.dataset.compare = letter;
      made.dataset.take = take.id;
      return made;
    };
    entry.append(
      element("strong", name),
      text,
      button(t("Play"), t("Play {name}", { name }), () => void this.#playAlone(take)),
      button(t("Download"), t("Download {name}", { name }), () => void this.#download(take)),
      button(t("Use again"), t("Use again: text and settings of {name}", { name }), () =>
        this.#speak.bringBack(take),
      ),
      choose("A"),
      choose("B"),
    );
    return entry;
  }

  #showCompared() {
    for (const made of this.#find("take-list").querySelectorAll("[data-compare]")) {
      const chosen = String(this.#compared[made.dataset.compare]) === made.dataset.take;
      made.setAttribute("aria-pressed", String(chosen));
    }
    const { A, B } = this.#compared;
    const comparable = A !== null && B !== null && A !== B;
    this.#find("play-both").disabled = !comparable;
    this.#find("switch").disabled = !comparable;
    const other = { [A]: "B", [B]: "A" }[this.#playing?.id];
    this.#find("switch").textContent = other ? t("Switch to {other}", { other }) : t("Play A, to switch");
  }

  #take(letter) {
    return this.#listed.find(({ id }) => id === this.#compared[letter]);
  }

  async #playAlone(take) {
    this.#next = [];
    await this.#play(take);
  }

  async #playBoth() {
    this.#next = [this.#take("B")];
    await this.#play(this.#take("A"));
  }

  async #switch() {
    this.#next = [];
    const playing = this.#playing;
    if (playing === null) {
      await this.#play(this.#take("A"));
      return;
    }
    const to = this.#take(playing.id === this.#compared.A ? "B" : "A");
    await this.#play(to, samePlace(playing, to, this.#speaker.playedSeconds));
  }

  async #play(take, fromSeconds = 0) {
    const samples = await (await this.#takes).samples(take.id);
    if (samples === undefined) {
      await this.#refresh(); // cleared in another tab
      return;
    }
    this.#speak.play({ ...take, samples }, fromSeconds);
    this.#playing = take;
    this.#showCompared();
  }

  async #download(take) {
    const samples = await (await this.#takes).samples(take.id);
    if (samples !== undefined) {
      const file = encodeWav(samples, take.sampleRate, take.channels);
      save(file, "wav", "audio/wav", nameFile(take.text));
    }
  }

  async #clear() {
    const agreed = await this.#confirm({
      title: t("Clear the takes?"),
      text: t("They are deleted from this browser. This cannot be undone."),
      act: t("Clear"),
    });
    if (!agreed) return;
    await (await this.#takes).clear();
    this.#show(t("The takes are cleared."));
    await this.#refresh();
  }
}

function nameOf({ voiceName, request, seconds, at, stopped }) {
  const time = new Date(at).toLocaleTimeString();
  const speed = request.speed === undefined || request.speed === 1 ? "" : `, ${decimal(request.speed)}×`;
  return `${voiceName}${speed}, ${decimal(seconds, 1)} s, ${time}${stopped ? `, ${t("stopped")}` : ""}`;
}

function shortened(text) {
  const one = text.replaceAll(/\s+/g, " ").trim();
  return one.length > SHOWN_CHARACTERS ? `${one.slice(0, SHOWN_CHARACTERS)}…` : one;
}
