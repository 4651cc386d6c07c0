// Draws the server's /metrics while it is watched.

import { SpeechError } from "../api/errors.js";
import { histogram, lineChart } from "../metrics/charts.js";
import { buckets, parseMetrics, total } from "../metrics/parse.js";
import { decimal, t } from "../texts.js";
import { milliseconds } from "./units.js";
import { statusLine } from "./status.js";
import { untilVisible } from "./visible.js";

const INTERVAL_MS = 1_000;
const LIMIT_MS = 1_500; // of one request
const PLACES = 120; // two minutes
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const ENDS = [
  ["completed", t("completed")],
  ["aborted", t("aborted")],
  ["failed", t("failed")],
];

export class MetricsView {
  #server;
  #find;
  #show;
  #timer = null;
  #watching = false;
  #samples = new Map(); // of the last answer
  #width = 300; // of a chart, in pixels
  #history = { running: [], waiting: [], memory: [] };

  constructor(root, server) {
    this.#server = server;
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#show = statusLine(this.#find("metrics-status"));
    new ResizeObserver(() => this.#fit()).observe(this.#find("charts"));
  }

  watch(watching) {
    clearTimeout(this.#timer);
    this.#watching = watching;
    if (!watching) return;
    for (const values of Object.values(this.#history)) values.length = 0;
    void this.#ask();
  }

  async #ask() {
    await untilVisible();
    try {
      this.#draw(parseMetrics(await this.#server.text("metrics", LIMIT_MS)));
      this.#show(t("Live, once a second."));
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      this.#show(error.message, true);
      if (error.status === 401) return;
    }
    clearTimeout(this.#timer); // of an answer that was on its way when the tab was shown again
    if (this.#watching) this.#timer = setTimeout(() => void this.#ask(), INTERVAL_MS);
  }

  #draw(samples) {
    const { running, waiting, memory } = this.#history;
    this.#keep(running, total(samples, "cantata_requests_running"));
    this.#keep(waiting, total(samples, "cantata_requests_waiting"));
    this.#keep(memory, total(samples, "cantata_stage_rss_bytes") / GIB);
    this.#samples = samples;
    this.#paint();
    this.#fit();
    this.#find("stages").replaceChildren(...stageRows(samples));
  }

  // The charts are drawn for one width; another one is known once they are in the page.
  #fit() {
    const shown = this.#find("charts").querySelector("svg")?.clientWidth ?? 0;
    if (shown === 0 || shown === this.#width) return;
    this.#width = shown;
    this.#paint();
  }

  #paint() {
    const { running, waiting, memory } = this.#history;
    const samples = this.#samples;
    const width = this.#width;
    const whole = { width, places: PLACES, least: 4, format: String };
    const gib = { width, places: PLACES, least: 1, format: (value) => `${decimal(value, 1)} G` };
    this.#find("charts").replaceChildren(
      lineChart(
        t("Requests"),
        [{ label: t("running"), values: running }, { label: t("waiting"), values: waiting }],
        whole,
      ),
      timesChart(samples, width),
      rtfChart(samples, width),
      lineChart(t("Memory of the stages"), [{ label: t("resident"), values: memory }], gib),
      outcomes(samples),
    );
  }

  #keep(values, value) {
    values.push(value);
    if (values.length > PLACES) values.shift();
  }
}

function timesChart(samples, width) {
  const bars = buckets(samples, "cantata_audio_ttfp_seconds");
  const format = (seconds) => (seconds < 1 ? String(Math.round(seconds * 1000)) : `${seconds}s`);
  const summary = average(samples, "cantata_audio_ttfp_seconds", milliseconds);
  return histogram(t("First packet after, ms"), bars, { width, format, summary });
}

function rtfChart(samples, width) {
  const bars = buckets(samples, "cantata_audio_rtf");
  const summary = average(samples, "cantata_audio_rtf", (mean) => decimal(mean, 2));
  const format = (rtf) => String(rtf).replace(/^0/, "");
  return histogram(t("Real-time factor"), bars, { width, format, summary });
}

function average(samples, name, format) {
  const count = total(samples, `${name}_count`);
  if (count === 0) return t("none yet");
  const mean = format(total(samples, `${name}_sum`) / count);
  return t("mean {mean} of {number}", { mean, number: count });
}

function outcomes(samples) {
  const ends = ENDS.map(([end, name]) => [name, total(samples, `cantata_speech_stream_${end}_total`)]);
  const counts = [...ends, [t("rejected"), total(samples, "cantata_requests_rejected_total")]];
  const element = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.append(textElement("strong", t("Utterances so far")));
  const list = document.createElement("dl");
  list.className = "outcomes";
  for (const [name, count] of counts) {
    const pair = document.createElement("div");
    pair.append(textElement("dt", name), textElement("dd", String(count)));
    list.append(pair);
  }
  element.append(caption, list);
  return element;
}

function stageRows(samples) {
  const valueOf = (metric, { model, stage }) =>
    (samples.get(metric) ?? [])
      .filter(({ labels }) => labels.model === model && labels.stage === stage)
      .map(({ labels, value }) => ({ labels, value }));
  return (samples.get("cantata_stage_alive") ?? []).map(({ labels, value: alive }) => {
    const held = valueOf("cantata_stage_held", labels)
      .map(({ labels: { what }, value }) => `${value} ${what.replaceAll("_", " ")}`)
      .join(", ");
    const [memory] = valueOf("cantata_stage_rss_bytes", labels);
    const [startup] = valueOf("cantata_stage_startup_seconds", labels);
    const row = document.createElement("tr");
    const head = textElement("th", `${labels.model} ${labels.stage}`);
    head.scope = "row";
    const state = textElement("td", alive === 1 ? t("alive") : t("down"));
    state.className = alive === 1 ? "alive" : "down";
    row.append(
      head,
      state,
      textElement("td", held || t("nothing")),
      textElement("td", `${Math.round((memory?.value ?? 0) / MIB)} MiB`),
      textElement("td", `${decimal(startup?.value ?? 0, 1)} s`),
    );
    return row;
  });
}

function textElement(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}
