// The tab that draws the server's /metrics while it is visible.

import { SpeechError } from "../api/errors.js";
import { histogram, lineChart } from "../metrics/charts.js";
import { buckets, parseMetrics, total } from "../metrics/parse.js";
import { milliseconds } from "./meters.js";
import { statusLine } from "./status.js";
import { untilVisible } from "./visible.js";

const INTERVAL_MS = 1_000;
const LIMIT_MS = 1_500; // of one request
const PLACES = 120; // two minutes
const MIB = 2 ** 20;
const GIB = 2 ** 30;
const ENDS = ["completed", "aborted", "failed"];

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
      this.#show("Live, once a second.");
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
    const gib = { width, places: PLACES, least: 1, format: (value) => `${value.toFixed(1)} G` };
    this.#find("charts").replaceChildren(
      lineChart(
        "Requests",
        [{ label: "running", values: running }, { label: "waiting", values: waiting }],
        whole,
      ),
      timesChart(samples, width),
      rtfChart(samples, width),
      lineChart("Memory of the stages", [{ label: "resident", values: memory }], gib),
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
  return histogram("First packet after, ms", bars, { width, format, summary });
}

function rtfChart(samples, width) {
  const bars = buckets(samples, "cantata_audio_rtf");
  const summary = average(samples, "cantata_audio_rtf", (mean) => mean.toFixed(2));
  const format = (rtf) => String(rtf).replace(/^0/, "");
  return histogram("Real-time factor", bars, { width, format, summary });
}

function average(samples, name, format) {
  const count = total(samples, `${name}_count`);
  if (count === 0) return "none yet";
  return `mean ${format(total(samples, `${name}_sum`) / count)} of ${count}`;
}

function outcomes(samples) {
  const ends = ENDS.map((end) => [end, total(samples, `cantata_speech_stream_${end}_total`)]);
  const counts = [...ends, ["rejected", total(samples, "cantata_requests_rejected_total")]];
  const element = document.createElement("figure");
  const caption = document.createElement("figcaption");
  caption.innerHTML = "<strong>Utterances so far</strong>";
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
    const state = textElement("td", alive === 1 ? "alive" : "down");
    state.className = alive === 1 ? "alive" : "down";
    row.append(
      head,
      state,
      textElement("td", held || "nothing"),
      textElement("td", `${Math.round((memory?.value ?? 0) / MIB)} MiB`),
      textElement("td", `${(startup?.value ?? 0).toFixed(1)} s`),
    );
    return row;
  });
}

function textElement(name, text) {
  const element = document.createElement(name);
  element.textContent = text;
  return element;
}
