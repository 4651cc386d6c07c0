// OpenAI's SDK: the words of a recording while it is heard.
// Arguments: base URL, file. Prints the events.

import { createReadStream } from "node:fs";
import OpenAI from "openai";

const [baseURL, file] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "no-key-is-needed", maxRetries: 0 });
const stream = await client.audio.transcriptions.create({
  file: createReadStream(file),
  model: "gpt-4o-mini-transcribe",
  stream: true,
  include: ["logprobs"],
});
const events = [];
for await (const event of stream) events.push(event);
console.log(JSON.stringify(events));
