// OpenAI's SDK: a spoken question that needs a function.
// Arguments: base URL, file with s16le at 24 kHz, the function as JSON. Prints the answer.

import OpenAI from "openai";
import { OpenAIRealtimeWS } from "openai/realtime/ws";
import * as weather from "./weather.mjs";

const client = new OpenAI({ baseURL: weather.baseURL, apiKey: weather.KEY });
const realtime = new OpenAIRealtimeWS({ model: weather.MODEL }, client);
const pieces = [];
const { name, description, parameters } = weather;

realtime.on("session.created", async () => {
  const turn_detection = { type: "server_vad", silence_duration_ms: 500 };
  const tools = [{ type: "function", name, description, parameters }];
  const session = { type: "realtime", tools, audio: { input: { turn_detection } } };
  realtime.send({ type: "session.update", session });
  for await (const audio of weather.readFrames()) {
    realtime.send({ type: "input_audio_buffer.append", audio });
  }
});
realtime.on("response.output_audio.delta", ({ delta }) => pieces.push(delta));
realtime.on("response.function_call_arguments.done", (call) => {
  const output = weather.getWeather(JSON.parse(call.arguments));
  const item = { type: "function_call_output", call_id: call.call_id, output };
  realtime.send({ type: "conversation.item.create", item });
});
const transcript = await new Promise((resolve, reject) => {
  realtime.on("error", reject);
  realtime.on("response.output_audio_transcript.done", (event) => resolve(event.transcript));
  realtime.on("response.done", ({ response }) => {
    if (response.output.some(({ type }) => type === "function_call")) {
      realtime.send({ type: "response.create" });
    }
  });
});
realtime.close();
weather.print(transcript, pieces);
