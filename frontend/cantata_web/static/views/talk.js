// The tab for a spoken conversation.

import { TalkState } from "../talk/states.js";
import { t } from "../texts.js";
import { Animation } from "./animation.js";
import { LevelLine } from "./levelline.js";
import { milliseconds } from "./units.js";
import { statusLine } from "./status.js";
import { TurnList } from "./turnlist.js";
import { Waveform } from "./waveform.js";

const STATUS = {
  [TalkState.OFF]: t("Not connected."),
  [TalkState.CONNECTING]: t("Connecting…"),
  [TalkState.LISTENING]: t("Listening."),
  [TalkState.HEARING]: t("I hear you…"),
  [TalkState.THINKING]: t("Thinking…"),
  [TalkState.SPEAKING]: t("Speaking."),
  [TalkState.LOST]: t("Trying again…"),
};
const LEVEL_PACKETS = 100; // on the microphone's line: four seconds

export class TalkView {
  #find;
  #talk;
  #voice;
  #show;
  #levels = 0;
  #line;

  /**
   * @param {AnswerVoice} voice whose sound is drawn
   * @param {Answerer} answerer which may change during a talk
   */
  constructor(root, { talk, voice, answerer }) {
    this.#find = (role) => root.querySelector(`[data-role="${role}"]`);
    this.#talk = talk;
    this.#voice = voice;
    this.#show = statusLine(this.#find("talk-status"));
    this.#line = new LevelLine(this.#find("talk-level"));
    new TurnList(root.querySelector(".transcript"), talk.transcript);
    this.#find("talk").addEventListener("click", () => {
      if (talk.on) talk.stop();
      else void talk.start();
    });
    this.#find("interrupt").addEventListener("click", () => talk.interrupt());
    talk.addEventListener("state", () => this.#refresh());
    talk.addEventListener("state", () => this.#time(root));
    talk.addEventListener("level", ({ detail }) => this.#drawLevel(detail));
    talk.addEventListener("latencies", () => this.#time(root));
    answerer.addEventListener("change", () => talk.changeVoice());
    this.#drawVoice();
  }

  #refresh() {
    const { state, error, on, answering } = this.#talk;
    const sentence = STATUS[state];
    const waits = state === TalkState.LOST ? ` ${sentence}` : "";
    this.#show(error === null ? sentence : error + waits, error !== null);
    this.#find("talk-status").dataset.state = state;
    this.#find("talk").textContent = on ? t("Stop talking") : t("Start talking");
    this.#find("interrupt").disabled = !answering;
    if (state === TalkState.CONNECTING) this.#levels = 0;
  }

  #drawLevel(peak) {
    const place = this.#levels % LEVEL_PACKETS;
    if (place === 0) this.#line.clear();
    this.#line.append(peak, place / LEVEL_PACKETS);
    this.#levels += 1;
  }

  #time(root) {
    const { latencies } = this.#talk;
    for (const element of root.querySelectorAll("[data-latency]")) {
      element.textContent = milliseconds(latencies?.[element.dataset.latency] ?? null);
    }
  }

  #drawVoice() {
    const voice = this.#voice;
    const waveform = new Waveform(this.#find("answer"));
    const animation = new Animation(() => {
      waveform.draw(voice.playedSeconds, voice.gaps);
      return voice.active;
    });
    voice.addEventListener("begin", () => {
      waveform.clear();
      animation.start();
    });
    voice.addEventListener("samples", ({ detail }) => {
      waveform.append(detail, voice.sampleRate, 1);
    });
  }
}
