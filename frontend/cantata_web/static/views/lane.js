// One stream's lane: waiting, first packet, chunks as they came, and what a listener heard.

import { Outcome } from "../parallel/stream.js";
import { decimal, t } from "../texts.js";
import { milliseconds } from "./units.js";

const ARRIVALS = 0.55; // of the lane's height; the rest shows the listener

export class Lane {
  element = document.createElement("li");
  #canvas = document.createElement("canvas");
  #result = document.createElement("span");

  constructor(number) {
    const label = document.createElement("span");
    label.className = "number";
    label.textContent = String(number);
    this.#canvas.setAttribute("aria-hidden", "true");
    this.#result.className = "result";
    this.element.append(label, this.#canvas, this.#result);
  }

  /** @param {number} span seconds that the lane's width stands for */
  draw(stream, span) {
    const words = resultOf(stream);
    if (this.#result.textContent !== words) this.#result.textContent = words;
    this.element.dataset.outcome = stream.outcome;

    const scale = window.devicePixelRatio || 1;
    const width = Math.round(this.#canvas.clientWidth * scale);
    const height = Math.round(this.#canvas.clientHeight * scale);
    if (this.#canvas.width !== width) this.#canvas.width = width;
    if (this.#canvas.height !== height) this.#canvas.height = height;
    const style = getComputedStyle(this.#canvas);
    const context = this.#canvas.getContext("2d");
    context.clearRect(0, 0, width, height);
    const bar = (colour, from, to, top, bottom) => {
      const x = (from / span) * width;
      const wide = Math.max(2 * scale, ((to - from) / span) * width);
      context.fillStyle = style.getPropertyValue(colour);
      context.fillRect(x, top * height, wide, (bottom - top) * height);
    };
    drawLane(stream, bar);
  }
}

function drawLane({ listener, endedAt, elapsed, outcome }, bar) {
  const over = endedAt ?? elapsed;
  bar("--wave-empty", 0, listener.firstAt ?? over, 0.22, ARRIVALS - 0.22);
  if (outcome === Outcome.REFUSED) bar("--gap", over, over, 0, 1);
  for (const { at } of listener.chunks) bar("--wave-ahead", at, at, 0.05, ARRIVALS - 0.05);
  for (const { from, to } of listener.plays) bar("--wave-played", from, to, ARRIVALS + 0.1, 0.95);
  listener.plays.slice(1).forEach((play, i) => {
    bar("--gap", listener.plays[i].to, play.from, ARRIVALS + 0.1, 0.95);
  });
  if (listener.firstAt !== null) bar("--first", listener.firstAt, listener.firstAt, 0, 1);
}

function resultOf({ outcome, error, listener, rtf }) {
  if (outcome === Outcome.CONNECTING) return t("connects");
  if (outcome === Outcome.WAITING) return t("waits");
  if (outcome === Outcome.REFUSED) return `429: ${error.detail}`;
  if (outcome === Outcome.FAILED) return error.message;
  const parts = [milliseconds(listener.firstAt), `${decimal(listener.receivedSeconds, 1)} s`];
  if (rtf !== null) parts.push(`RTF ${decimal(rtf, 2)}`);
  if (listener.underruns > 0) {
    parts.push(t({ one: "{count} gap", other: "{count} gaps" }, { count: listener.underruns }));
  }
  if (outcome === Outcome.STOPPED) parts.push(t("stopped"));
  return parts.join(" · ");
}
