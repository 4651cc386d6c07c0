// A spoken conversation as a call over WebRTC, in the place of a socket: OpenAI's events over a data
// channel, and the sound both ways by the browser itself, which makes up for packets that are lost.

import { SpeechError } from "../api/errors.js";
import { RealtimeSession } from "../api/realtime.js";
import { t } from "../texts.js";

const PATH = "v1/realtime/calls";
const CONNECT_MS = 10_000;
const NOT_SERVED = new Set([404, 501]); // statuses with which a WebSocket may be
// The server knows what it has played: it shortens the answer itself.
const SILENCING = new Set(["response.cancel", "conversation.item.truncate"]);

export class Call {
  carriesSound = true;
  /** Whether the server has answered the offer. */
  answered = false;
  /** Whether it has been talked to. */
  reached = false;
  #server;
  #model;
  #microphone;
  #player;
  #listener;
  #peer = new RTCPeerConnection();
  #channel = this.#peer.createDataChannel("oai-events");
  #sender = null;
  #track = null; // a clone of the microphone's: it may be shut while that is heard
  #open = false; // the track
  #interrupted = false;
  #closed = false;
  #timer;
  #over = null; // the id of the last response whose sound is over
  #done = null; // the event of a response that still sounds
  #rewire = () => this.#wire();

  /** @param {{opened(), received(event), sound(samples), interrupted(sentence), resumed(),
   *   lost(error)}} listener as a RealtimeSession's; `sound` is given an answer as it is heard */
  constructor({ server, model, microphone, player }, listener) {
    this.#server = server;
    this.#model = model;
    this.#microphone = microphone;
    this.#player = player;
    this.#listener = listener;
    this.#timer = setTimeout(() => this.#lose(broken()), CONNECT_MS);
    this.#peer.addEventListener("track", ({ track }) => {
      void player.listen(new MediaStream([track]), (samples) => listener.sound(samples));
    });
    this.#peer.addEventListener("connectionstatechange", () => this.#follow());
    this.#channel.addEventListener("open", () => {
      clearTimeout(this.#timer);
      this.reached = true;
      listener.opened();
    });
    this.#channel.addEventListener("message", ({ data }) => this.#take(JSON.parse(data)));
    this.#channel.addEventListener("close", () => this.#lose(broken()));
    microphone.addEventListener("open", this.#rewire);
    void this.#dial();
  }

  /** @param {boolean} open whether the server hears the microphone */
  gate(open) {
    this.#open = open;
    if (this.#track !== null) this.#track.enabled = open;
  }

  send(type, fields = {}) {
    if (this.#channel.readyState !== "open") return;
    const clears = SILENCING.has(type);
    const { event_id } = fields;
    const event = clears ? { type: "output_audio_buffer.clear", event_id } : { type, ...fields };
    this.#channel.send(JSON.stringify(event));
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#microphone.removeEventListener("open", this.#rewire);
    this.#track?.stop();
    this.#player.close();
    this.#peer.close();
  }

  async #dial() {
    const query = this.#model === "" ? "" : `?model=${encodeURIComponent(this.#model)}`;
    const headers = { "Content-Type": "application/sdp" };
    try {
      this.#wire();
      await this.#peer.setLocalDescription();
      const body = this.#peer.localDescription.sdp;
      const asked = { method: "POST", headers, body, limitMs: CONNECT_MS };
      const answer = await this.#server.request(`${PATH}${query}`, asked);
      const sdp = await answer.text();
      this.answered = true;
      if (!this.#closed) await this.#peer.setRemoteDescription({ type: "answer", sdp });
    } catch (error) {
      this.#lose(error instanceof SpeechError ? error : broken());
    }
  }

  // What the microphone hears from now on goes out.
  #wire() {
    this.#track?.stop();
    [this.#track] = this.#microphone.stream.clone().getAudioTracks();
    this.#track.enabled = this.#open;
    if (this.#sender === null) this.#sender = this.#peer.addTrack(this.#track);
    else void this.#sender.replaceTrack(this.#track);
  }

  #follow() {
    const state = this.#peer.connectionState;
    if (state === "failed") {
      this.#lose(broken());
    } else if (state === "disconnected") {
      this.#interrupted = true;
      this.#listener.interrupted(broken().message);
    } else if (state === "connected" && this.#interrupted) {
      this.#interrupted = false;
      this.#listener.resumed();
    }
  }

  #take(event) {
    if (this.#closed) return;
    const { type, response, response_id: id } = event;
    if (type === "output_audio_buffer.started") this.#player.start();
    if (type === "output_audio_buffer.stopped") void this.#player.finish().then(() => this.#end(id));
    if (type === "output_audio_buffer.cleared") {
      this.#player.stop();
      this.#end(id);
    }
    // Made long before it is heard: for whoever listens it is done when the sound is over.
    if (type === "response.done" && sounds(response) && response.id !== this.#over) this.#done = event;
    else this.#listener.received(event);
  }

  #end(id) {
    this.#over = id;
    const done = this.#done;
    if (this.#closed || done?.response.id !== id) return;
    this.#done = null;
    this.#listener.received(done);
  }

  #lose(error) {
    if (this.#closed) return;
    this.close();
    this.#listener.lost(error);
  }
}

/** A call where the server and the browser make one, else a WebSocket. */
export class CallOrSocket {
  #session;

  /** @param {() => void} refused a WebSocket takes the call's place */
  constructor(parts, listener, refused) {
    const { server, model } = parts;
    const call = new Call(parts, {
      ...listener,
      lost: (error) => {
        // An offer that was answered in vain: something between us lets no such sound through.
        const unserved = NOT_SERVED.has(error.status) || call.answered;
        if (call.reached || !unserved) {
          listener.lost(error);
          return;
        }
        refused();
        this.#session = new RealtimeSession(server, model, listener);
      },
    });
    this.#session = call;
  }

  get carriesSound() {
    return this.#session.carriesSound ?? false;
  }

  gate(open) {
    this.#session.gate?.(open);
  }

  send(type, fields) {
    this.#session.send(type, fields);
  }

  close() {
    this.#session.close();
  }
}

function sounds({ status, output }) {
  return status === "completed"
    && output.some(({ content = [] }) => content.some(({ type }) => type === "output_audio"));
}

function broken() {
  return new SpeechError(t("The connection broke."));
}
