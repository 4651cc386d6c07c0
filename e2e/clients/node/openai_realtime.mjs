// OpenAI's SDK: a transcription session over a WebSocket.
// Arguments: base URL, file with s16le at 24 kHz. Prints the events.

import { readFile } from "node:fs/promises";
import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";

const FRAME_BYTES = 2400;
const LAST = "conversation.item.input_audio_transcription.completed";

const [baseURL, file] = process.argv.slice(2);
const sound = await readFile(file);
const client = new OpenAI({ baseURL, apiKey: "no-key-is-needed" });
const realtime = new OpenAIRealtimeWS({ intent: "transcription" }, client);
const events = [];

const finished = new Promise((resolve, reject) => {
  realtime.on("error", reject);
  realtime.on("event", (event) => events.push(event));
  realtime.on(LAST, resolve);
});
realtime.on("session.created", () => {
  const turn_detection = { type: "server_vad", silence_duration_ms: 400 };
  const input = { transcription: { model: "gpt-4o-transcribe", language: "en" }, turn_detection };
  realtime.send({ type: "session.update", session: { type: "transcription", audio: { input } } });
  for (let start = 0; start < sound.length; start += FRAME_BYTES) {
    const audio = sound.subarray(start, start + FRAME_BYTES).toString("base64");
    realtime.send({ type: "input_audio_buffer.append", audio });
  }
});
await finished;
realtime.close();
console.log(JSON.stringify(events));
