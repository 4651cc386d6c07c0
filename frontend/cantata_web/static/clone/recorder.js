// Recording a voice with the browser's MediaRecorder, with its loudness while it lasts.

import { openMicrophone } from "./microphone.js";

const TYPES = ["audio/webm;codecs=opus", "audio/mp4", "audio/ogg;codecs=opus"];

/** Dispatches "level" (detail: {seconds, peak 0..1}) a few dozen times a second. */
export class Recorder extends EventTarget {
  /** Whether the last recording ended because the microphone vanished. */
  gone = false;
  #media = null;
  #context = null;
  #stream = null;
  #startedAt = 0;

  /** @param {number} mostSeconds after which a recording ends by itself */
  constructor(mostSeconds) {
    super();
    this.mostSeconds = mostSeconds;
  }

  get recording() {
    return this.#media?.state === "recording";
  }

  /** Resolves once it records; rejects with a SpeechError where it may not. */
  async start() {
    this.#stream = await openMicrophone();
    const mimeType = TYPES.find((type) => MediaRecorder.isTypeSupported(type));
    this.#media = new MediaRecorder(this.#stream, { mimeType });
    for (const track of this.#stream.getTracks()) track.addEventListener("ended", () => this.stop());
    this.#media.start();
    this.#startedAt = performance.now();
    this.#listen();
  }

  /** Resolves with the recording (a Blob) once it is stopped. */
  async untilStopped() {
    const media = this.#media;
    const { data } = await new Promise((resolve) => {
      media.addEventListener("dataavailable", resolve, { once: true });
    });
    const tracks = this.#stream.getTracks();
    this.gone = tracks.some(({ readyState }) => readyState === "ended");
    for (const track of tracks) track.stop();
    void this.#context.close();
    return data;
  }

  stop() {
    if (this.recording) this.#media.stop();
  }

  #listen() {
    this.#context = new AudioContext();
    const analyser = this.#context.createAnalyser();
    this.#context.createMediaStreamSource(this.#stream).connect(analyser);
    const samples = new Float32Array(analyser.fftSize);
    const frame = () => {
      if (!this.recording) return;
      analyser.getFloatTimeDomainData(samples);
      const seconds = (performance.now() - this.#startedAt) / 1000;
      const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
      this.dispatchEvent(new CustomEvent("level", { detail: { seconds, peak } }));
      if (seconds >= this.mostSeconds) this.stop();
      else requestAnimationFrame(frame);
    };
    frame();
  }
}
