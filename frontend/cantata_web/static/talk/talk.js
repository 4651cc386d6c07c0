// A spoken conversation: joins the microphone, the connection and the voice that answers. No DOM
// here.

import { asSentence, asSpeechError } from "../api/errors.js";
import { GONE } from "../clone/microphone.js";
import { t } from "../texts.js";
import { decodePcm, encodePcm } from "./base64.js";
import { TALK_RATE } from "./capture.js";
import { HeardClock, Latencies } from "./latencies.js";
import { TalkState } from "./states.js";
import { Transcript } from "./transcript.js";

/** How a turn ends. */
export const Turns = Object.freeze({
  MEANING: "meaning", // when the user sounds finished, where the server can tell
  PAUSE: "pause",
  KEY: "key", // when a key is let go
});
const DETECTION = {
  [Turns.MEANING]: { type: "semantic_vad" },
  [Turns.PAUSE]: { type: "server_vad", silence_duration_ms: 500 },
  [Turns.KEY]: null,
};
const SILENCE_MS = { [Turns.MEANING]: 200, [Turns.PAUSE]: 500, [Turns.KEY]: 0 }; // before it is noticed
const SETTINGS = "settings"; // the id of events that the server may refuse
const MIN_HELD_MS = 200; // less is a slip of the finger
const FORMAT = { type: "audio/pcm", rate: TALK_RATE };
const RACE = "race"; // the id of events that may come too late

/**
 * Dispatches "state", "latencies", "packet" (detail: the Int16Array that was heard), "options",
 * "level" (detail: 0..1, how loud a packet was), and "unsaid" (detail: a typed text that the server
 * has refused).
 */
export class Talk extends EventTarget {
  state = TalkState.OFF;
  error = null; // a sentence
  latencies = null; // of the last turn
  transcript = new Transcript();
  /** Of the next session, or with `change` of this one. */
  options = { turns: Turns.MEANING, instructions: "", tools: [] };
  muted = false;
  #calls = []; // ids of calls that have no result
  #typed = 0; // turns
  #sent = new Map(); // typed turns that the server has not taken yet: {text, call}, by id
  #heldSince = null;
  #line;
  #microphone;
  #voice;
  #choice;
  #chosen = null; // when it connected
  #clock = new HeardClock();
  #ready = false; // the session has its settings
  #response = null; // {id, item, sounding, made} under way, or played to its end
  #handlers = { ...this.#ownHandlers(), ...this.#answerHandlers() };

  /**
   * @param {Line} line
   * @param {Microphone} microphone
   * @param {AnswerVoice} voice
   * @param {() => {model?, voice?}} choice which voice answers
   */
  constructor({ line, microphone, voice, choice }) {
    super();
    this.#line = line;
    this.#microphone = microphone;
    this.#voice = voice;
    this.#choice = choice;
    voice.addEventListener("audible", ({ detail }) => this.#time("sound", detail));
    voice.addEventListener("ended", () => this.#played());
  }

  get on() {
    return this.state !== TalkState.OFF;
  }

  /** Whether there is an answer to interrupt. */
  get answering() {
    return this.#response !== null;
  }

  /** Begins a new conversation. Call it from the click. */
  async start() {
    this.error = null;
    this.latencies = null;
    this.transcript.clear();
    this.#voice.unlock();
    this.#calls = [];
    this.#enter(TalkState.CONNECTING);
    if (await this.#hear()) this.#connect();
  }

  /** Another microphone was chosen. */
  async changeMicrophone() {
    if (!this.on) return;
    this.#microphone.close();
    await this.#hear();
  }

  // Resolves with whether it hears.
  async #hear() {
    try {
      return await this.#microphone.open({
        heard: (samples) => this.#send(samples),
        ended: () => this.#fail(GONE),
      });
    } catch (error) {
      this.#fail(error.message);
      return false;
    }
  }

  /** Takes other options, at once if it is connected. */
  change(options) {
    Object.assign(this.options, options);
    if (this.#ready) this.#update();
  }

  /** A turn that was typed: also the result of a call, if one waits for it. */
  say(text) {
    if (!this.#ready) return;
    this.interrupt();
    this.#typed += 1;
    const id = `typed_${this.#typed}_${Math.floor(1e9 * Math.random())}`;
    this.transcript.begin(id, "user");
    this.transcript.complete(id, text);
    const call = this.#calls.shift();
    this.#sent.set(id, { text, call });
    const item = call
      ? { id, type: "function_call_output", call_id: call, output: text }
      : { id, type: "message", role: "user", content: [{ type: "input_text", text }] };
    this.#line.send("conversation.item.create", { event_id: id, item });
    this.latencies = new Latencies(now());
    this.error = null;
    this.#enter(TalkState.THINKING);
  }

  // Only now: an answer to a turn that was refused would be one to the turn before it.
  #taken(id) {
    if (this.#sent.delete(id)) this.#line.send("response.create");
  }

  // What was typed is given back, to be changed and said again.
  #refused(id, { message }) {
    const { text, call } = this.#sent.get(id);
    this.#sent.delete(id);
    if (call !== undefined) this.#calls.unshift(call);
    this.transcript.remove(id);
    this.error = t("This was not sent: {message}", { message: asSentence(message) });
    this.#enter(this.state === TalkState.THINKING ? TalkState.LISTENING : this.state);
    this.dispatchEvent(new CustomEvent("unsaid", { detail: text }));
  }

  /** The key is held: what is said from now on is a turn. */
  hold() {
    if (!this.#ready || this.#heldSince !== null) return;
    this.interrupt();
    this.#heldSince = performance.now();
    this.#line.send("input_audio_buffer.clear");
    this.#enter(TalkState.HEARING);
  }

  /** The key is let go. */
  release() {
    if (this.#heldSince === null) return;
    const heldMs = performance.now() - this.#heldSince;
    this.#heldSince = null;
    if (!this.#ready) return;
    if (heldMs < MIN_HELD_MS) {
      this.#enter(TalkState.LISTENING);
      return;
    }
    this.#line.send("input_audio_buffer.commit");
    this.#askForAnswer();
  }

  #askForAnswer() {
    this.latencies = new Latencies(now());
    this.#line.send("response.create");
    this.#enter(TalkState.THINKING);
  }

  stop() {
    this.#end();
    this.error = null;
    this.#enter(TalkState.OFF);
  }

  /** Silences the answer. */
  interrupt() {
    if (!this.answering) return;
    if (!this.#response.made) this.#race("response.cancel");
    this.#cut();
    this.#enter(TalkState.LISTENING);
  }

  /** Another voice may have been chosen: a session keeps its own, so another one goes on. */
  changeVoice() {
    const { model, voice } = this.#choice();
    const same = model === this.#chosen?.model && voice === this.#chosen?.voice;
    if (same || !this.#line.connected) return;
    this.#forget();
    this.#enter(TalkState.CONNECTING);
    this.#connect();
  }

  #connect() {
    const model = () => {
      this.#chosen = this.#choice();
      return this.#chosen.model ?? "";
    };
    this.#line.open(model, {
      opened: () => this.#configure(),
      received: (event) => this.#handlers[event.type]?.(event),
      sound: (samples) => {
        if (this.answering) this.#speak(samples);
      },
      interrupted: (sentence) => this.#wait(sentence),
      resumed: () => this.#goOn(),
      broken: (sentence) => this.#lose(sentence),
      failed: (error) => this.#fail(error.message),
    });
  }

  #configure() {
    this.#clock = new HeardClock();
    this.#update();
    for (const item of this.transcript.items) this.#line.send("conversation.item.create", { item });
  }

  #update() {
    const { voice } = this.#chosen;
    const { turns, instructions, tools } = this.options;
    this.#line.send("session.update", {
      event_id: SETTINGS,
      session: {
        type: "realtime",
        ...(instructions && { instructions }),
        ...(tools.length > 0 && { tools }),
        audio: {
          input: { format: FORMAT, transcription: {}, turn_detection: DETECTION[turns] },
          output: { format: FORMAT, ...(voice && { voice }) },
        },
      },
    });
  }

  #send(samples) {
    if (this.muted) samples.fill(0);
    this.dispatchEvent(new CustomEvent("packet", { detail: samples }));
    const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0) / 32768;
    this.dispatchEvent(new CustomEvent("level", { detail: peak }));
    const meant = this.#ready && (this.options.turns !== Turns.KEY || this.#heldSince !== null);
    const { carriesSound } = this.#line;
    if (carriesSound) this.#line.gate(meant && !this.muted);
    if (!meant && !carriesSound) return;
    this.#clock.advance(samples.length / TALK_RATE, now());
    if (!carriesSound) this.#line.send("input_audio_buffer.append", { audio: encodePcm(samples) });
  }

  // Of the session and of the user's side.
  #ownHandlers() {
    const { transcript } = this;
    const heard = "conversation.item.input_audio_transcription";
    return {
      "session.updated": () => {
        if (this.#ready) return; // only its options have changed
        this.#ready = true;
        this.error = null;
        this.#enter(TalkState.LISTENING);
      },
      "input_audio_buffer.speech_started": ({ item_id: id }) => {
        if (this.answering) this.#cut();
        this.error = null;
        transcript.begin(id, "user");
        this.#enter(TalkState.HEARING);
      },
      "input_audio_buffer.speech_stopped": ({ audio_end_ms: endMs }) => {
        this.latencies = new Latencies(this.#clock.when((endMs - SILENCE_MS[this.options.turns]) / 1000));
        this.#time("noticed", now());
        this.#enter(TalkState.THINKING);
      },
      // Without detection nothing says earlier that there is a turn.
      "input_audio_buffer.committed": ({ item_id: id }) => transcript.begin(id, "user"),
      [`${heard}.delta`]: ({ item_id: id, delta }) => transcript.add(id, delta),
      [`${heard}.completed`]: ({ item_id: id, transcript: text }) => transcript.complete(id, text),
      [`${heard}.failed`]: ({ item_id: id }) => transcript.complete(id, null),
      "conversation.item.added": ({ item }) => this.#taken(item.id),
      error: ({ error }) => this.#note(error),
    };
  }

  #answerHandlers() {
    const { transcript } = this;
    // Of an answer that was interrupted more may arrive.
    const current = (handle) => (event) => {
      if (event.response_id === this.#response?.id) handle(event);
    };
    return {
      "response.created": ({ response }) => {
        this.#response = { id: response.id, item: null, sounding: false, made: false };
        this.#enter(TalkState.THINKING);
      },
      "response.output_item.added": current(({ item }) => {
        if (item.type === "function_call") return;
        this.#response.item = item.id;
        transcript.begin(item.id, "assistant");
      }),
      "response.output_item.done": current(({ item }) => {
        if (item.type !== "function_call") return;
        this.#calls.push(item.call_id);
        transcript.begin(item.id, "tool");
        transcript.complete(item.id, `${item.name}(${item.arguments})`);
      }),
      "response.output_audio_transcript.delta": current(({ item_id: id, delta }) => {
        this.#time("text", now());
        transcript.add(id, delta);
      }),
      "response.output_audio_transcript.done": current(({ item_id: id, transcript: text }) =>
        transcript.complete(id, text),
      ),
      "response.output_audio.delta": current(({ delta }) => this.#speak(decodePcm(delta))),
      "response.done": ({ response }) => this.#made(response),
      "conversation.item.truncated": ({ item_id: id }) =>
        this.#race("conversation.item.retrieve", { item_id: id }),
      // What the server keeps of it: the words that were heard.
      "conversation.item.retrieved": ({ item }) =>
        transcript.complete(item.id, item.content[0]?.transcript ?? null),
    };
  }

  #speak(samples) {
    if (!this.#response.sounding) {
      this.#response.sounding = true;
      this.#voice.begin();
      this.#enter(TalkState.SPEAKING);
    }
    this.#voice.push(samples);
  }

  #made({ id, status, status_details: details }) {
    if (id !== this.#response?.id) return;
    this.#response.made = true;
    if (this.#response.item !== null) this.transcript.complete(this.#response.item, null);
    if (status === "failed" && details?.error) this.error = asSpeechError(details.error).message;
    if (this.#response.sounding) this.#voice.end();
    else this.#played();
  }

  #played() {
    this.#response = null;
    this.#enter(TalkState.LISTENING);
  }

  // The answer is silenced, and the server told how much of it was heard.
  #cut() {
    const { item, sounding } = this.#response;
    this.#response = null;
    if (item !== null) this.transcript.cut(item);
    if (!sounding) return;
    const heardMs = this.#voice.stop();
    const place = { item_id: item, content_index: 0, audio_end_ms: heardMs };
    this.#race("conversation.item.truncate", place);
  }

  #time(what, at) {
    if (this.latencies === null) return;
    this.latencies.note(what, at);
    this.dispatchEvent(new Event("latencies"));
  }

  // An answer may end at the moment at which it is interrupted: such an error changes nothing.
  #race(type, fields) {
    this.#line.send(type, { ...fields, event_id: RACE });
  }

  #note(error) {
    if (error.event_id === RACE) return;
    if (this.#sent.has(error.event_id)) {
      this.#refused(error.event_id, error);
      return;
    }
    if (error.event_id === SETTINGS && this.options.turns === Turns.MEANING) {
      this.options.turns = Turns.PAUSE;
      this.dispatchEvent(new Event("options"));
      this.#update();
      return;
    }
    this.error = asSpeechError(error).message;
    this.#enter(this.state);
  }

  // The session may go on: what was received is played, and what is said is kept.
  #wait(sentence) {
    this.error = sentence;
    this.#enter(TalkState.LOST);
  }

  #goOn() {
    this.error = null;
    if (this.state !== TalkState.LOST) this.#enter(this.state);
    else if (!this.#ready) this.#enter(TalkState.CONNECTING);
    else if (!this.answering) this.#enter(TalkState.LISTENING);
    else this.#enter(this.#response.sounding ? TalkState.SPEAKING : TalkState.THINKING);
  }

  #lose(sentence) {
    this.#forget();
    this.error = sentence;
    this.#enter(TalkState.LOST);
  }

  #fail(sentence) {
    this.#end();
    this.error = sentence;
    this.#enter(TalkState.OFF);
  }

  #end() {
    this.#forget();
    this.#line.close();
    this.#microphone.close();
  }

  // Nothing of the session is under way any more.
  #forget() {
    this.#ready = false;
    this.#sent.clear();
    if (this.#response !== null) {
      if (this.#response.sounding) this.#voice.stop();
      if (this.#response.item !== null) this.transcript.cut(this.#response.item);
      this.#response = null;
    }
    this.transcript.close();
  }

  #enter(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

function now() {
  return performance.now() / 1000;
}
