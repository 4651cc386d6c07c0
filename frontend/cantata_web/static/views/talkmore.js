// What a conversation has besides its start and stop: devices, mute, push to talk, typed turns,
// instructions, tools, and its words and sound as files.

import { RealtimeSession } from "../api/realtime.js";
import { encodeWav } from "../player/wav.js";
import { CallOrSocket } from "../talk/call.js";
import { CallPlayer } from "../talk/callplayer.js";
import { TALK_RATE } from "../talk/capture.js";
import { TalkRecording } from "../talk/recording.js";
import { TalkState } from "../talk/states.js";
import { Turns } from "../talk/talk.js";
import { t } from "../texts.js";
import { Devices } from "./devices.js";
import { MicrophoneCheck } from "./microphonecheck.js";
import { nameFile, save } from "./save.js";
import { statusLine } from "./status.js";

const KEPT = "talking";
/** How the sound of the next conversation travels. */
const Way = Object.freeze({ SOCKET: "socket", CALL: "call" });
const ON_PHONES = "(pointer: coarse)"; // whose networks lose packets
const NAMES = { user: t("You"), assistant: t("Server"), tool: t("Server calls") };

/** Dispatches "begin" before it plays what the microphone heard. */
export class TalkMore extends EventTarget {
  recording = new TalkRecording();
  #find;
  #field;
  #talk;
  #voice;
  #line;
  #microphone;
  #store;
  #devices;
  #callPlayer = null;
  #check;
  #show;
  #lock = null; // keeps the screen awake
  #wasOn = false;

  constructor(panel, { talk, line, voice, microphone, store }) {
    super();
    this.#find = (role) => panel.querySelector(`[data-role="${role}"]`);
    this.#field = (name) => panel.querySelector(`#cantata-${name}`);
    this.#talk = talk;
    this.#voice = voice;
    this.#line = line;
    this.#microphone = microphone;
    this.#store = store;
    this.#show = statusLine(this.#find("talk-told"));
    const menus = { audioinput: this.#field("microphone"), audiooutput: this.#field("loudspeaker") };
    this.#devices = new Devices(menus, store);
    const level = panel.parentElement.querySelector("[data-role='talk-level']");
    this.#check = new MicrophoneCheck(this.#devices, level, this.#show);
    this.#find("loudspeaker-control").hidden = !("setSinkId" in AudioContext.prototype);
    this.#restore();
    this.#listenToControls();
    this.#listenToTalk();
    void this.#devices.refresh().then(() => this.#useDevices());
    this.#refresh();
  }

  #listenToControls() {
    const on = (role, type, act) => this.#find(role).addEventListener(type, act);
    const talk = this.#talk;
    on("talk-mute", "click", () => {
      talk.muted = !talk.muted;
      this.#refresh();
    });
    this.#devices.addEventListener("microphone", () => {
      this.#useDevices();
      void talk.changeMicrophone();
    });
    this.#devices.addEventListener("loudspeaker", () => this.#useDevices());
    for (const name of ["talk-turns", "talk-way", "talk-instructions", "talk-tools"]) {
      this.#field(name).addEventListener("change", () => this.#change());
    }
    on("talk-form", "submit", (event) => {
      event.preventDefault();
      const field = this.#field("talk-text");
      if (field.value.trim() === "") return;
      talk.say(field.value.trim());
      field.value = "";
    });
    on("talk-save", "click", () => this.#saveWords());
    on("talk-save-sound", "click", () => this.#saveSound());
    on("talk-check", "click", () => {
      if (this.#check.active) this.#check.stop();
      else this.#begins();
    });
    this.#check.addEventListener("change", () => this.#refresh());
    this.#listenToKey();
  }

  #begins() {
    this.dispatchEvent(new Event("begin"));
    void this.#check.start();
  }

  #listenToKey() {
    const hold = this.#find("talk-hold");
    const press = () => {
      this.#talk.hold();
      this.#refresh();
    };
    const release = () => {
      this.#talk.release();
      this.#refresh();
    };
    hold.addEventListener("pointerdown", (event) => {
      hold.setPointerCapture(event.pointerId);
      press();
    });
    for (const type of ["pointerup", "pointercancel", "blur"]) hold.addEventListener(type, release);
    hold.addEventListener("keydown", (event) => {
      if (event.key !== " " && event.key !== "Enter") return;
      event.preventDefault();
      if (!event.repeat) press();
    });
    hold.addEventListener("keyup", release);
    hold.addEventListener("contextmenu", (event) => event.preventDefault());
  }

  #listenToTalk() {
    const talk = this.#talk;
    talk.addEventListener("state", () => this.#refresh());
    talk.addEventListener("options", () => {
      this.#field("talk-turns").value = talk.options.turns;
      this.#show(t("This server cannot tell when you sound finished: a pause ends your turn."));
    });
    talk.addEventListener("unsaid", ({ detail }) => {
      const field = this.#field("talk-text");
      if (field.value === "") field.value = detail;
    });
    talk.addEventListener("packet", ({ detail }) => this.recording.hear(detail));
    this.#voice.addEventListener("begin", () => this.recording.begin());
    this.#voice.addEventListener("samples", ({ detail }) => this.recording.answer(detail));
    this.#voice.addEventListener("silenced", () => this.recording.cut());
    talk.transcript.addEventListener("change", () => this.#refresh());
    document.addEventListener("visibilitychange", () => void this.#stayAwake());
  }

  #useDevices() {
    this.#microphone.device = this.#devices.microphone;
    this.#voice.device = this.#devices.loudspeaker;
  }

  #restore() {
    const { turns, way, instructions = "", tools = "" } = this.#store.get(KEPT, {});
    const usual = matchMedia(ON_PHONES).matches ? Way.CALL : Way.SOCKET;
    this.#field("talk-way").value = Object.values(Way).includes(way) ? way : usual;
    this.#field("talk-turns").value = turns ?? this.#talk.options.turns;
    if (this.#field("talk-turns").value === "") this.#field("talk-turns").value = Turns.MEANING;
    this.#field("talk-instructions").value = instructions;
    this.#field("talk-tools").value = tools;
    this.#change();
  }

  #change() {
    const turns = this.#field("talk-turns").value;
    const instructions = this.#field("talk-instructions").value.trim();
    const text = this.#field("talk-tools").value.trim();
    const tools = text === "" ? [] : parseList(text);
    if (tools === null) {
      this.#show(t("The tools are not a JSON list of functions. Mend or empty that field."), true);
      return;
    }
    this.#show("");
    this.#talk.change({ turns, instructions, tools });
    const way = this.#field("talk-way").value;
    this.#store.set(KEPT, { turns, way, instructions, tools: text });
    this.#line.opener = (...session) => way === Way.CALL ? this.#call(...session) : this.#connect(...session);
    this.#refresh();
  }

  #connect(server, model, listener) {
    this.#voice.use(null);
    return new RealtimeSession(server, model, listener);
  }

  #call(server, model, listener) {
    if (!("RTCPeerConnection" in window)) return this.#connect(server, model, listener);
    this.#callPlayer ??= new CallPlayer();
    this.#voice.use(this.#callPlayer);
    const parts = { server, model, microphone: this.#microphone, player: this.#callPlayer };
    return new CallOrSocket(parts, listener, () => {
      this.#voice.use(null);
      this.#show(t("No call over WebRTC could be made: the sound goes over a WebSocket."));
    });
  }

  #refresh() {
    const { state, on, muted, options, transcript } = this.#talk;
    if (on && !this.#wasOn) this.#begin();
    if (on !== this.#wasOn) {
      this.#wasOn = on;
      void this.#stayAwake();
    }
    if (on) this.#check.stop();
    this.#find("talk-check").disabled = on;
    this.#find("talk-check").textContent = this.#check.active ? t("End the test") : t("Test both");
    const connected = on && state !== TalkState.CONNECTING && state !== TalkState.LOST;
    this.#find("talk-mute").setAttribute("aria-pressed", String(muted));
    this.#find("talk-mute").textContent = muted ? t("Unmute") : t("Mute");
    const hold = this.#find("talk-hold");
    hold.hidden = options.turns !== Turns.KEY;
    hold.disabled = !connected;
    this.#find("talk-say").disabled = !connected;
    this.#find("talk-save").disabled = transcript.turns.length === 0;
    this.#find("talk-save-sound").disabled = this.recording.seconds === 0;
  }

  #begin() {
    this.recording.clear();
    void this.#devices.refresh();
  }

  // The browser lets go of the lock when the page is hidden.
  async #stayAwake() {
    const wanted = this.#talk.on && document.visibilityState === "visible";
    if (!wanted) {
      await this.#lock?.release();
      this.#lock = null;
      return;
    }
    try {
      this.#lock = (await navigator.wakeLock?.request("screen")) ?? null;
    } catch {
      this.#lock = null; // a low battery: the screen may go dark
    }
  }

  get #name() {
    return nameFile(this.#talk.transcript.turns.find(({ text }) => text.trim() !== "")?.text ?? "");
  }

  #saveWords() {
    const said = this.#talk.transcript.turns.filter(({ text }) => text.trim() !== "");
    const lines = said.map(({ role, text, cut }) =>
      `**${NAMES[role]}:** ${cut ? t("{text} … (interrupted)", { text: text.trim() }) : text.trim()}\n`);
    save(lines.join("\n"), "md", "text/markdown", this.#name);
  }

  #saveSound() {
    save(encodeWav(this.recording.samples, TALK_RATE, 2), "wav", "audio/wav", this.#name);
    if (this.recording.full) this.#show(t("It has the first half hour of the conversation."));
  }
}

function parseList(text) {
  try {
    const list = JSON.parse(text);
    return Array.isArray(list) ? list : null;
  } catch {
    return null;
  }
}
