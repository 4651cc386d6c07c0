// Server-sent events out of a response's body, which fetch can read and EventSource cannot POST for.

import { t } from "../texts.js";
import { SpeechError } from "./errors.js";

const END = "[DONE]"; // OpenAI's streams end with it, and it is no JSON

/** Yields each event's data, which is JSON, as `{name, id, data}`. Rejects with a SpeechError if the
 *  connection breaks, and with an AbortError if the request was aborted. */
export async function* readEvents(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  const blankLine = /\r?\n\r?\n/g;
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await read(reader);
      if (done) return;
      // An event may be megabytes long: what was searched before is not searched again.
      blankLine.lastIndex = Math.max(0, rest.length - 3);
      rest += value;
      let start = 0;
      for (let end; (end = blankLine.exec(rest)) !== null; start = blankLine.lastIndex) {
        const event = parse(rest.slice(start, end.index));
        if (event !== null) yield event;
      }
      rest = rest.slice(start);
    }
  } finally {
    // A stream that has failed cannot be cancelled, and need not.
    reader.cancel().catch(() => {});
  }
}

async function read(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new SpeechError(t("The connection broke."));
  }
}

function parse(block) {
  const fields = { event: [], id: [], data: [] };
  for (const line of block.split(/\r?\n/)) {
    const colon = line.indexOf(":");
    fields[line.slice(0, colon)]?.push(line.slice(colon + 1).replace(/^ /, ""));
  }
  const data = fields.data.join("\n");
  if (data === "" || data === END) return null;
  return { name: fields.event.at(-1) ?? "message", id: fields.id.at(-1) ?? null, data: JSON.parse(data) };
}
