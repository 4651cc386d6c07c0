// The page: joins the markup in page.html to a Speaker.

import { Meters } from "./meters.js";
import { loadVoices, pickedVoice, waitUntilReady } from "./server.js";
import { Speaker, State } from "./speaker.js";
import { encodeWav } from "./wav.js";
import { Waveform } from "./waveform.js";

const EXAMPLES = [
  "The quick brown fox jumps over the lazy dog.",
  "Good morning. The train to the coast leaves at half past nine.",
  "I never said she stole my money.",
  "It rained all night, but by the time we reached the harbour the sky had cleared, " +
    "and the boats were going out.",
];

const STATUS = {
  [State.IDLE]: "Ready when you are.",
  [State.WAITING]: "Asking for the first sound…",
  [State.BUFFERING]: "The first sound is here.",
  [State.PLAYING]: "Speaking.",
  [State.DONE]: "Spoken to the end.",
  [State.STOPPED]: "Stopped.",
};

export function start(root) {
  const find = (role) => root.querySelector(`[data-role="${role}"]`);
  const text = root.querySelector("#cantata-text");
  const voice = root.querySelector("#cantata-voice");
  const speed = root.querySelector("#cantata-speed");
  const seed = root.querySelector("#cantata-seed");
  const apiBase = new URL(root.dataset.apiBase || ".", document.baseURI);
  const socketUrl = new URL("v1/audio/speech/stream", apiBase);
  socketUrl.protocol = apiBase.protocol === "https:" ? "wss:" : "ws:";

  const speaker = new Speaker(socketUrl);
  const waveform = new Waveform(root.querySelector("canvas"));
  const meters = new Meters(root, speaker, waveform);
  expose(speaker);

  const show = (sentence, isError = false) => {
    const status = find("status");
    if (status.textContent !== sentence) status.textContent = sentence;
    status.dataset.error = String(isError);
  };

  const speak = () => {
    const said = text.value.trim();
    if (said === "") {
      show("Write something first.", true);
      text.focus();
      return;
    }
    const config = { ...pickedVoice(voice), speed: Number(speed.value) };
    if (seed.value !== "") config.seed = Number(seed.value);
    speaker.speak({ text: said, ...config });
  };

  const refresh = () => {
    const { state } = speaker;
    root.dataset.state = state;
    show(speaker.error ?? STATUS[state], state === State.ERROR);
    find("stop").disabled = !speaker.busy;
    find("download").disabled = speaker.busy || speaker.metrics.playedFrames === 0;
  };

  speaker.addEventListener("state", refresh);
  find("speak").addEventListener("click", speak);
  find("stop").addEventListener("click", () => speaker.stop());
  find("download").addEventListener("click", () => download(speaker));
  find("reseed").addEventListener("click", () => {
    seed.value = String(crypto.getRandomValues(new Uint32Array(1))[0] % 1_000_000);
  });
  speed.addEventListener("input", () => {
    find("speed").textContent = `${Number(speed.value).toFixed(2)}×`;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) speak();
    else if (event.key === "Escape") speaker.stop();
  });

  text.value = EXAMPLES[0];
  find("examples").append(...EXAMPLES.map((example) => chip(example, text)));
  void connect(apiBase, voice, root, find("server"));
}

async function connect(apiBase, voice, root, indicator) {
  const tell = (ready, sentence) => {
    indicator.dataset.ready = String(ready);
    indicator.firstElementChild.textContent = sentence;
  };
  await waitUntilReady(apiBase, (sentence) => tell(false, sentence));
  try {
    const count = await loadVoices(apiBase, voice, root.querySelector("#cantata-voice-about"));
    tell(true, count === 1 ? "Ready, one voice" : `Ready, ${count} voices`);
  } catch (error) {
    tell(false, error.message);
  }
}

function chip(example, text) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = example;
  button.addEventListener("click", () => {
    text.value = example;
    text.focus();
  });
  return button;
}

function download(speaker) {
  const wav = encodeWav(speaker.capturedPcm(), speaker.sampleRate);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([wav], { type: "audio/wav" }));
  link.download = "cantata.wav";
  link.click();
  URL.revokeObjectURL(link.href);
}

// For tests and for the curious at the console.
function expose(speaker) {
  window.cantata = {
    get state() {
      return speaker.state;
    },
    get metrics() {
      return speaker.metrics;
    },
    get error() {
      return speaker.error;
    },
    capturedPcm: () => speaker.capturedPcm(),
  };
}
