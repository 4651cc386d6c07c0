// A spoken conversation: joins the microphone, the connection and the voice that answers. No DOM
// here.

import { asSpeechError } from "../api/errors.js";
import { decodePcm, encodePcm } from "./base64.js";
import { TALK_RATE } from "./capture.js";
import { HeardClock, Latencies } from "./latencies.js";
import { TalkState } from "./states.js";
import { Transcript } from "./transcript.js";

const SILENCE_MS = 500; // ends a turn
const FORMAT = { type: "audio/pcm", rate: TALK_RATE };
const RACE = "race"; // the id of events that may come too late

/** Dispatches "state", "latencies", and "level" (detail: 0..1, how loud a packet was). */
export class Talk extends EventTarget {
  state = TalkState.OFF;
  error = null; // a sentence
  latencies = null; // of the last turn
  transcript = new Transcript();
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
    this.#enter(TalkState.CONNECTING);
    let hears;
    try {
      hears = await this.#microphone.open({
        heard: (samples) => this.#send(samples),
        ended: () => this.#fail("The microphone was taken away."),
      });
    } catch (error) {
      this.#fail(error.message);
      return;
    }
    if (hears) this.#connect();
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
      broken: (sentence) => this.#lose(sentence),
      failed: (error) => this.#fail(error.message),
    });
  }

  #configure() {
    const { voice } = this.#chosen;
    this.#clock = new HeardClock();
    this.#line.send("session.update", {
      session: {
        type: "realtime",
        audio: {
          input: {
            format: FORMAT,
            transcription: {},
            turn_detection: { type: "server_vad", silence_duration_ms: SILENCE_MS },
          },
          output: { format: FORMAT, ...(voice && { voice }) },
        },
      },
    });
    for (const item of this.transcript.items) this.#line.send("conversation.item.create", { item });
  }

  #send(samples) {
    const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0) / 32768;
    this.dispatchEvent(new CustomEvent("level", { detail: peak }));
    if (!this.#ready) return;
    this.#clock.advance(samples.length / TALK_RATE, now());
    this.#line.send("input_audio_buffer.append", { audio: encodePcm(samples) });
  }

  // Of the session and of the user's side.
  #ownHandlers() {
    const { transcript } = this;
    const heard = "conversation.item.input_audio_transcription";
    return {
      "session.updated": () => {
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
        this.latencies = new Latencies(this.#clock.when((endMs - SILENCE_MS) / 1000));
        this.#time("noticed", now());
        this.#enter(TalkState.THINKING);
      },
      [`${heard}.delta`]: ({ item_id: id, delta }) => transcript.add(id, delta),
      [`${heard}.completed`]: ({ item_id: id, transcript: text }) => transcript.complete(id, text),
      [`${heard}.failed`]: ({ item_id: id }) => transcript.complete(id, null),
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
        this.#response.item = item.id;
        transcript.begin(item.id, "assistant");
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
    this.error = asSpeechError(error).message;
    this.#enter(this.state);
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
