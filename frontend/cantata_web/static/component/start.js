// The Gradio component: speaks the text that its value has, and reports what is heard.

import { KeyStore, keyDialog } from "../api/keys.js";
import { Server } from "../api/server.js";
import { Readings } from "../speech/readings.js";
import { Speaker } from "../speech/speaker.js";
import { State } from "../speech/states.js";
import { Animation } from "../views/animation.js";
import { statusLine } from "../views/status.js";
import { Waveform } from "../views/waveform.js";
import { Narration } from "./narration.js";
import { Reports } from "./reports.js";

const STATUS = {
  [State.IDLE]: "Ready.",
  [State.WAITING]: "Waiting for the first sound…",
  [State.BUFFERING]: "The first sound is here.",
  [State.PLAYING]: "Speaking.",
  [State.STARVED]: "Waiting for more sound.",
  [State.PAUSED]: "Paused.",
  [State.LISTENING]: "Waiting for more text.",
  [State.DONE]: "Done.",
  [State.STOPPED]: "Stopped.",
};

/**
 * Gradio calls it with what it gives every component.
 * @param {HTMLElement} element
 * @param {{value, server_url, request}} props
 * @param {(event, data) => void} trigger
 * @param {(prop, callback) => void} watch
 */
export function start({ element, props, trigger, watch }) {
  const find = (role) => element.querySelector(`[data-role="${role}"]`);
  const base = new URL(props.server_url || ".", document.baseURI);
  const server = new Server(base, new KeyStore(base), keyDialog(find("key-dialog")));
  const speaker = new Speaker(server);
  const narration = new Narration(speaker);
  const waveform = new Waveform(element.querySelector("canvas"));
  const show = statusLine(find("status"));

  new Reports(speaker, trigger).start();
  draw(speaker, waveform);
  speaker.addEventListener("state", () => {
    show(speaker.error ?? STATUS[speaker.state], speaker.state === State.ERROR);
    find("stop").disabled = !speaker.busy;
  });
  find("stop").addEventListener("click", () => speaker.stop());
  watch("value", () => narration.follow(props.value, props.request));
  find("speech").cantata = new Readings(speaker);
}

function draw(speaker, waveform) {
  const animation = new Animation(() => {
    waveform.draw(speaker.playedSeconds);
    return speaker.busy;
  });
  speaker.addEventListener("begin", () => waveform.clear());
  speaker.addEventListener("samples", ({ detail }) => {
    const { sampleRate, channels } = speaker.metrics;
    waveform.append(detail, sampleRate, channels);
  });
  speaker.addEventListener("state", () => animation.start());
}
