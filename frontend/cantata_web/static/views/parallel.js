// Runs many streams at a time.

import { quantile } from "../parallel/listener.js";
import { connectAll, Outcome, Stream } from "../parallel/stream.js";
import { decimal, t } from "../texts.js";
import { Animation } from "./animation.js";
import { Lane } from "./lane.js";
import { milliseconds } from "./units.js";
import { statusLine } from "./status.js";

const MIN_SPAN_SECONDS = 4;
const TOLD_EVERY_MS = 1_000; // a screen reader says each sentence
const SENTENCES = [
  "The ferry leaves the harbour at seven, and the tide is already going out.",
  "She put the letter back into the drawer and locked it without a word.",
  "By noon the market was full of people who had come to see the horses.",
  "There are eleven windows in this house, and not one of them closes well.",
  "He counted the steps to the top of the tower, and then he counted again.",
  "If the wind turns to the north, we shall have snow before the morning.",
  "The orchestra had stopped, but nobody in the room wanted to leave.",
  "Two brothers kept the mill, and each of them thought it was his own.",
];

export class ParallelView {
  streams = [];
  #server;
  #settings;
  #find;
  #total;
  #count;
  #show;
  #lanes = [];
  #animation = new Animation(() => this.#draw());

  constructor(root, { server, settings }) {
    this.#server = server;
    this.#settings = settings;
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#total = (name) => root.querySelector(`[data-total="${name}"]`);
    this.#count = root.querySelector("#cantata-streams");
    this.#show = statusLine(this.#find("run-status"));
    this.#find("run").addEventListener("click", () => void this.#run());
    this.#find("halt").addEventListener("click", () => this.stop());
    new ResizeObserver(() => this.#draw()).observe(this.#find("lanes"));
  }

  stop() {
    for (const stream of this.streams) stream.stop();
  }

  async #run() {
    const { min, max } = this.#count;
    if (!this.#count.checkValidity() || this.#count.value === "") {
      this.#show(t("Choose between {min} and {max} streams.", { min, max }), true);
      this.#count.focus();
      return;
    }
    const count = Number(this.#count.value);
    this.streams = Array.from({ length: count }, (_, i) => new Stream(this.#server, i + 1));
    this.#lanes = this.streams.map(({ number }) => new Lane(number));
    this.#find("lanes").replaceChildren(...this.#lanes.map(({ element }) => element));
    this.#find("run").disabled = true;
    this.#find("halt").disabled = false;
    this.#show(t("Connecting."));
    this.#animation.start();
    await connectAll(this.streams, this.#settings.request);
    const over = Promise.all(
      this.streams.map((stream, i) => stream.speak(SENTENCES[i % SENTENCES.length])),
    );
    this.#tellProgress();
    const telling = setInterval(() => this.#tellProgress(), TOLD_EVERY_MS);
    await over;
    clearInterval(telling);
    this.#find("run").disabled = false;
    this.#find("halt").disabled = true;
    this.#show(this.#verdict(), this.streams.some(({ outcome }) => outcome === Outcome.FAILED));
  }

  #draw() {
    const ends = this.streams.map(({ listener, endedAt, elapsed }) =>
      Math.max(listener.endsAt, endedAt ?? elapsed),
    );
    const span = Math.max(MIN_SPAN_SECONDS, ...ends);
    this.streams.forEach((stream, i) => this.#lanes[i].draw(stream, span));
    this.#sum();
    return this.streams.some(({ endedAt }) => endedAt === null);
  }

  #sum() {
    const heard = this.streams.filter(({ listener }) => listener.firstAt !== null);
    const firsts = heard.map(({ listener }) => listener.firstAt);
    const sound = heard.reduce((sum, { listener }) => sum + listener.receivedSeconds, 0);
    const lasts = this.streams.map(({ endedAt, elapsed }) => endedAt ?? elapsed);
    const took = Math.max(0, ...lasts);
    const underruns = heard.reduce((sum, { listener }) => sum + listener.underruns, 0);
    const values = {
      ttfp50: milliseconds(quantile(firsts, 0.5)),
      ttfp95: milliseconds(quantile(firsts, 0.95)),
      rate: took > 0 && sound > 0 ? `${decimal(sound / took, 1)} s` : "–",
      underruns: heard.length === 0 ? "–" : String(underruns),
      refused: this.streams.length === 0 ? "–" : String(this.#having(Outcome.REFUSED)),
    };
    for (const [name, value] of Object.entries(values)) this.#total(name).textContent = value;
  }

  #having(wanted) {
    return this.streams.filter(({ outcome }) => outcome === wanted).length;
  }

  #tellProgress() {
    const number = (outcome) => ({ number: this.#having(outcome) });
    const shares = [
      [Outcome.SPEAKING, t("{number} speaking", number(Outcome.SPEAKING))],
      [Outcome.WAITING, t("{number} waiting", number(Outcome.WAITING))],
      [Outcome.DONE, t("{number} done", number(Outcome.DONE))],
      [Outcome.REFUSED, t("{number} rejected", number(Outcome.REFUSED))],
    ].filter(([outcome]) => this.#having(outcome) > 0);
    const said = shares.map(([, words]) => words).join(", ");
    const count = this.streams.length;
    this.#show(t({ one: "Of {count} stream: {said}.", other: "Of {count} streams: {said}." }, { count, said }));
  }

  #verdict() {
    const refused = this.#having(Outcome.REFUSED);
    const failed = this.streams.find(({ outcome }) => outcome === Outcome.FAILED);
    const values = { done: this.#having(Outcome.DONE), count: this.streams.length, refused };
    const done = t({
      one: "{done} of {count} stream completed.",
      other: "{done} of {count} streams completed.",
    }, values);
    if (failed !== undefined) return `${done} ${failed.error.message}`;
    if (this.#having(Outcome.STOPPED) > 0) return t("Stopped.");
    if (refused === 0) return done;
    return t({
      one: "{done} of {count} stream completed; the server rejected {refused} with 429. Run fewer at a time.",
      other: "{done} of {count} streams completed; the server rejected {refused} with 429. Run fewer at a time.",
    }, values);
  }
}
