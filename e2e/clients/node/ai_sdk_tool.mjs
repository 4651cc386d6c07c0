// Vercel's AI SDK: a spoken question that needs a function, over its provider's server connection.
// Arguments: base URL, file with s16le at 24 kHz, the function as JSON. Prints the answer.

import { createOpenAI } from "@ai-sdk/openai";
import { experimental_getRealtimeToolDefinitions, jsonSchema, tool } from "ai";
import WebSocket from "ws";
import * as weather from "./weather.mjs";

const openai = createOpenAI({ baseURL: weather.baseURL, apiKey: weather.KEY });
const model = openai.experimental_realtime(weather.MODEL);
const inputSchema = jsonSchema(weather.parameters);
const tools = await experimental_getRealtimeToolDefinitions({
  tools: { [weather.name]: tool({ description: weather.description, inputSchema }) },
});
const { url, headers } = await model.getServerWebSocketConfig();
const socket = new WebSocket(url, { headers });
const send = (event) => socket.send(JSON.stringify(model.serializeClientEvent(event)));
const pieces = [];
let isCalled = false;

const transcript = await new Promise((resolve, reject) => {
  socket.on("error", reject);
  socket.on("open", async () => {
    const turnDetection = { type: "server-vad", silenceDurationMs: 500 };
    send({ type: "session-update", config: { tools, turnDetection } });
    for await (const audio of weather.readFrames()) send({ type: "input-audio-append", audio });
  });
  socket.on("message", (data) => {
    for (const event of [model.parseServerEvent(JSON.parse(data))].flat()) {
      if (event.type === "error") reject(new Error(event.message));
      if (event.type === "audio-delta") pieces.push(event.delta);
      if (event.type === "audio-transcript-done") resolve(event.transcript);
      if (event.type === "function-call-arguments-done") {
        isCalled = true;
        const output = weather.getWeather(JSON.parse(event.arguments));
        const item = { type: "function-call-output", callId: event.callId, output };
        send({ type: "conversation-item-create", item });
      }
      if (event.type === "response-done" && isCalled) {
        isCalled = false;
        send({ type: "response-create" });
      }
    }
  });
});
socket.close();
weather.print(transcript, pieces);
