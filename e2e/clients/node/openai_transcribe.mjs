// OpenAI's SDK: a recording whole, with the times of its words, and translated.
// Arguments: base URL, file. Prints what came.

import { createReadStream } from "node:fs";
import OpenAI from "openai";

const [baseURL, file] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "no-key-is-needed", maxRetries: 0 });
const { transcriptions, translations } = client.audio;

const json = await transcriptions.create({ file: createReadStream(file), model: "gpt-transcribe" });
const verbose = await transcriptions.create({
  file: createReadStream(file),
  model: "whisper-1",
  language: "en",
  response_format: "verbose_json",
  timestamp_granularities: ["word", "segment"],
});
const refused = await translations
  .create({ file: createReadStream(file), model: "whisper-1" })
  .catch(({ constructor, status, param, message }) => ({
    error: constructor.name,
    status,
    param,
    message,
  }));
const models = [];
for await (const { id } of client.models.list()) models.push(id);
console.log(JSON.stringify({ json, verbose, refused, models }));
