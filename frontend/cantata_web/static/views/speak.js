// The tab that speaks.

import { asSpeechError, SpeechError } from "../api/errors.js";
import { writeSrt, writeVtt } from "../listen/subtitles.js";
import { encodeWav } from "../player/wav.js";
import { adviseLonger, MAX_CHARACTERS } from "../read/limits.js";
import { passagesOf } from "../speech/captions.js";
import { State } from "../speech/states.js";
import { t } from "../texts.js";
import { dialogueButton, exampleButtons, EXAMPLES } from "./examples.js";
import { Highlight } from "./highlight.js";
import { Meters } from "./meters.js";
import { PlayBar } from "./playbar.js";
import { nameFile, save } from "./save.js";
import { doneSentence, waitingSentence } from "./sentences.js";
import { statusLine } from "./status.js";
import { TypeAlong } from "./typealong.js";
import { Waveform } from "./waveform.js";

const STATUS = {
  [State.IDLE]: t("Ready when you are."),
  [State.WAITING]: t("Asking for the first sound…"),
  [State.BUFFERING]: t("The first sound is here."),
  [State.PLAYING]: t("Speaking."),
  [State.PAUSED]: t("Paused."),
  [State.LISTENING]: t("Go on typing. Each clause is spoken as you end it."),
  [State.STOPPED]: t("Stopped."),
};
const KEPT = "text";
const SHOW_COUNT_FROM = 200; // characters
const LONG_FROM = 600;

/** Dispatches "read" when the text is to be read along. */
export class SpeakView extends EventTarget {
  #speaker;
  #server;
  #settings;
  #store;
  #text;
  #find;
  #show;
  #along;
  #spoken = null; // the request whose sound the download is
  #playedText = null; // of the take that was played last, if nothing was spoken since
  #turn = null; // {text, request, voiceName} of the last turn; a text that is typed has none

  /** @param {BrowserStore} store keeps the text */
  constructor(root, { speaker, server, settings, store }) {
    super();
    this.#speaker = speaker;
    this.#server = server;
    this.#settings = settings;
    this.#store = store;
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#text = root.querySelector("#cantata-text");
    this.#show = statusLine(this.#find("status"));
    this.#along = new TypeAlong(this.#text, speaker, this.#show);
    const highlight = new Highlight(this.#text, this.#find("shadow"));
    const bar = new PlayBar(this.#find, { speaker, store, heardText: () => this.#heardText });
    const waveform = new Waveform(root.querySelector("canvas"), (seconds) => bar.seek(seconds));
    this.meters = new Meters(this.#find, speaker, waveform, highlight);
    this.#listen();
    this.#text.value = this.own ?? EXAMPLES[1].text;
    this.#count();
  }

  /** The text that was written here; null if there is none, now or from an earlier visit. */
  get own() {
    const kept = this.#store.get(KEPT);
    return typeof kept === "string" && kept.trim() !== "" ? kept : null;
  }

  get value() {
    return this.#text.value;
  }

  /** Replaces the text, as if it had been typed. */
  set value(text) {
    this.#text.value = text;
    this.#text.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** What would be spoken now: the text and its settings, under the API's names. */
  get request() {
    return { input: this.#text.value, ...this.#settings.request };
  }

  /** What was spoken last: {text, request, voiceName}. */
  get spoken() {
    return { ...this.#turn, text: this.#turn.text ?? this.#text.value };
  }

  /** Plays a take, and marks its words if its text is the one in the box. */
  play(take, fromSeconds) {
    this.#spoken = null;
    this.#playedText = take.text;
    this.#along.forget();
    const words = take.text === this.#text.value ? take.words : [];
    this.#speaker.play({ ...take, words }, fromSeconds);
  }

  /** Puts a take's text and settings back. */
  bringBack({ text, request }) {
    this.value = text;
    const [problem] = this.#settings.follow(request);
    this.#settings.directions.request = request;
    if (problem) this.#show(t("The {name} “{value}” is no longer offered.", problem), true);
    this.#text.focus();
  }

  speak() {
    if (this.#along.active) {
      this.#along.finish();
      this.#refresh();
      return;
    }
    const problem = this.#problem();
    if (problem !== null) {
      this.#show(problem, true);
      this.#text.focus();
      if (this.#text.value.length > MAX_CHARACTERS) void this.#advise(problem);
      return;
    }
    if (!this.#isDirected()) return;
    this.#spoken = this.request;
    const { input: text, ...request } = this.#spoken;
    this.#turn = { text, request, voiceName: this.#settings.voiceName };
    this.#playedText = null;
    this.#speaker.speak({ text, ...request });
  }

  stop() {
    this.#speaker.stop();
  }

  get #heardText() {
    return this.#playedText ?? this.#turn?.text ?? this.#text.value;
  }

  /** Shows a sentence in the tab's status line. */
  tell(sentence, isError) {
    this.#show(sentence, isError);
  }

  #listen() {
    const on = (role, type, act) => this.#find(role).addEventListener(type, act);
    on("speak", "click", () => this.speak());
    on("stop", "click", () => this.stop());
    on("again", "click", () => this.#speaker.resume());
    on("download", "click", () => void this.#download());
    on("read-along", "click", () => this.dispatchEvent(new Event("read")));
    on("along", "change", () => this.#typeAlong());
    this.#text.addEventListener("input", () => {
      this.#store.set(KEPT, this.#text.value);
      this.#count();
    });
    this.#speaker.addEventListener("state", () => this.#refresh());
    const use = (text) => {
      this.value = text;
      this.#text.focus();
      this.#text.setSelectionRange(0, 0);
      this.#text.scrollTop = 0;
    };
    const dialogue = dialogueButton(() => this.#settings.directions.speakerTag, use);
    this.#find("examples").append(...exampleButtons(use), dialogue);
    this.#settings.addEventListener("voice", () => {
      dialogue.hidden = this.#settings.directions.speakerTag === "";
    });
    dialogue.hidden = true;
  }

  #problem() {
    const { length } = Array.from(this.#text.value);
    const most = this.#settings.maxCharacters;
    if (this.#text.value.trim() === "") return t("Write something first.");
    if (length <= most) return null;
    if (this.#text.value.length > MAX_CHARACTERS) {
      return t(
        "The text has {length} characters; this model speaks at most {most} at a time, and “Read along” reads at most {longest}.",
        { length, most, longest: MAX_CHARACTERS },
      );
    }
    return t(
      "The text has {length} characters; this model speaks at most {most} at a time. “Read along” reads longer ones.",
      { length, most },
    );
  }

  // What takes such a text, if anything does.
  async #advise(problem) {
    const advice = await adviseLonger(this.#server);
    if (this.#find("status").textContent === problem) this.#show(`${problem} ${advice}`.trim(), true);
  }

  // Whether the options of the model's own are valid; else it goes there.
  #isDirected() {
    const { problem } = this.#settings.directions;
    if (problem === null) return true;
    this.#show(problem, true);
    this.#settings.directions.focusProblem();
    return false;
  }

  #typeAlong() {
    if (this.#find("along").checked && !this.#isDirected()) {
      this.#find("along").checked = false;
    } else if (this.#find("along").checked) {
      const { request, voiceName } = this.#settings;
      this.#spoken = null;
      this.#turn = { text: null, request, voiceName };
      this.#playedText = null;
      this.#along.start(request);
      this.#text.focus();
    } else {
      this.#along.finish();
    }
    this.#count();
    this.#refresh();
  }

  #refresh() {
    const { busy, error, metrics, resumable } = this.#speaker;
    if (!busy || error !== null) this.#along.forget();
    this.#find("along").checked = this.#along.active;
    this.#find("along-about").hidden = !this.#along.active;
    this.#find("speak").textContent = this.#along.active ? t("Finish") : t("Speak");
    this.#show(error ?? this.#sentence(), error !== null);
    this.#find("again").hidden = !resumable;
    this.#find("stop").disabled = !busy;
    this.#find("download").disabled = busy || metrics.playedFrames === 0;
  }

  #sentence() {
    const { state, metrics, replaying } = this.#speaker;
    if (state === State.PLAYING && replaying) return t("Playing it again.");
    if (state === State.STARVED) return waitingSentence(metrics);
    if (state === State.DONE) return doneSentence(metrics);
    return STATUS[state];
  }

  #count() {
    const { length } = this.#text.value;
    const long = length >= SHOW_COUNT_FROM;
    this.#find("read-along").hidden = length <= LONG_FROM;
    this.#find("count").textContent = long ? t("{number} characters", { number: length }) : "";
  }

  async #download() {
    const { metrics } = this.#speaker;
    const { id, type, isPlayed, isSubtitles } = this.#settings.format;
    const name = nameFile(this.#heardText);
    try {
      if (isSubtitles) {
        this.#saveSubtitles(id, type, name);
        return;
      }
      if (isPlayed || this.#spoken === null || metrics.stopped) {
        const { sampleRate, channels } = metrics;
        save(encodeWav(this.#speaker.recording(), sampleRate, channels), "wav", "audio/wav", name);
        return;
      }
      this.#show(t("Asking the server for the {format} file…", { format: id.toUpperCase() }));
      save(await this.#fetchFile(id), id, type, name);
      this.#show(t("The file is in your downloads."));
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#show(error.message, true);
    }
  }

  #saveSubtitles(id, type, name) {
    const passages = passagesOf(this.#heardText, this.#speaker.words.all);
    if (passages.length === 0) {
      this.#show(t("When the words of this sound are said is not known: it has no subtitles."), true);
      return;
    }
    save(id === "srt" ? writeSrt(passages) : writeVtt(passages), id, type, name);
    this.#show(t("The subtitles are in your downloads."));
  }

  async #fetchFile(format) {
    const response = await this.#server.request("v1/audio/speech", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...this.#spoken, response_format: format }),
    });
    try {
      return await response.arrayBuffer();
    } catch {
      throw asSpeechError({ message: t("the file broke off; try again"), code: null });
    }
  }
}
