// OpenAI's Agents SDK in Node: a spoken question that needs a function.
// Arguments: base URL, file with s16le at 24 kHz, the function as JSON. Prints the answer.

import {
  OpenAIRealtimeWebSocket,
  RealtimeAgent,
  RealtimeSession,
  tool,
} from "@openai/agents-realtime";
import * as weather from "./weather.mjs";

const { name, description, parameters } = weather;
const execute = (given) => weather.getWeather(given);
const tools = [tool({ name, description, parameters, strict: false, execute })];
const agent = new RealtimeAgent({ name: "Forecaster", instructions: "Say the weather.", tools });
const transport = new OpenAIRealtimeWebSocket();
const turnDetection = { type: "server_vad", silenceDurationMs: 500 };
const session = new RealtimeSession(agent, {
  transport,
  config: { audio: { input: { turnDetection } } },
});
const pieces = [];
const transcript = new Promise((resolve, reject) => {
  session.on("error", ({ error }) => reject(new Error(JSON.stringify(error))));
  transport.on("response.output_audio_transcript.done", (event) => resolve(event.transcript));
});
transport.on("response.output_audio.delta", ({ delta }) => pieces.push(delta));

const url = `${weather.baseURL.replace("http", "ws")}/realtime?model=${weather.MODEL}`;
await session.connect({ apiKey: weather.KEY, url });
for await (const audio of weather.readFrames()) {
  session.sendAudio(Uint8Array.from(Buffer.from(audio, "base64")).buffer);
}
const text = await transcript;
session.close();
weather.print(text, pieces);
