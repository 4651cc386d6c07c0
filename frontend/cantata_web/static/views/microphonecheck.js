// A trial of microphone and loudspeaker before a talk: some seconds are heard, shown, and played.

import { SpeechError } from "../api/errors.js";
import { Player } from "../player/player.js";
import { TALK_RATE } from "../talk/capture.js";
import { Microphone } from "../talk/microphone.js";
import { t } from "../texts.js";
import { LevelLine } from "./levelline.js";

const CHECK_SECONDS = 4;
const SILENT_LEVEL = 0.004; // -48 dBFS: speech into a microphone that works is louder
const RESERVE_SECONDS = 0.08;

/** Dispatches "change" when it begins to hear, to play, and when it is over. */
export class MicrophoneCheck extends EventTarget {
  active = false;
  #devices;
  #line;
  #tell;
  #microphone = new Microphone();
  #player = new Player();
  #packets = [];
  #run = 0; // late callbacks of an older one are ignored

  /**
   * @param {Devices} devices which are chosen
   * @param {HTMLCanvasElement} canvas shows how loud it is
   * @param {(sentence: string, isError?: boolean) => void} tell
   */
  constructor(devices, canvas, tell) {
    super();
    this.#devices = devices;
    this.#line = new LevelLine(canvas);
    this.#tell = tell;
  }

  /** Call it from the click. */
  async start() {
    this.stop();
    const run = this.#run;
    this.#packets = [];
    this.#microphone.device = this.#devices.microphone;
    this.#player.device = this.#devices.loudspeaker;
    this.#player.unlock(TALK_RATE);
    this.#enter(true);
    this.#line.clear();
    this.#tell(t("Say something…"));
    try {
      await this.#microphone.open({
        heard: (samples) => this.#hear(samples),
        ended: () => {
          this.stop();
          this.#tell(t("The microphone is gone. Connect it again or choose another one."), true);
        },
      });
    } catch (error) {
      if (!(error instanceof SpeechError)) throw error;
      if (run !== this.#run) return;
      this.stop();
      this.#tell(error.message, true);
    }
  }

  stop() {
    this.#run += 1;
    this.#microphone.close();
    this.#player.stop();
    if (this.active) this.#enter(false);
  }

  #hear(samples) {
    const frames = this.#packets.length * samples.length;
    this.#packets.push(samples);
    this.#line.append(peakOf(samples), frames / TALK_RATE / CHECK_SECONDS);
    if (frames + samples.length >= CHECK_SECONDS * TALK_RATE) this.#judge();
  }

  #judge() {
    this.#microphone.close();
    if (Math.max(...this.#packets.map(peakOf)) < SILENT_LEVEL) {
      this.stop();
      this.#tell(
        t("Nothing was heard. Choose another microphone, or see whether the system has muted it."),
        true,
      );
      return;
    }
    this.#tell(t("This is what it heard."));
    const run = this.#run;
    this.#player.begin({
      sampleRate: TALK_RATE,
      channels: 1,
      reserveSeconds: RESERVE_SECONDS,
      listener: {
        audible: () => {},
        report: () => {},
        ended: () => {
          if (run === this.#run) this.stop();
        },
      },
    });
    for (const packet of this.#packets) this.#player.push(packet);
    this.#player.end();
  }

  #enter(active) {
    this.active = active;
    this.dispatchEvent(new Event("change"));
  }
}

/** 0 to 1. */
function peakOf(samples) {
  return samples.reduce((peak, sample) => Math.max(peak, Math.abs(sample)), 0) / 32768;
}
