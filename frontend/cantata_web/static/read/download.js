// A book as a file. The server speaks a part at a time, and the browser keeps only the file.

import { SpeechError } from "../api/errors.js";
import { SpeechSession } from "../api/session.js";
import { writeSrt } from "../listen/subtitles.js";
import { encodeWav } from "../player/wav.js";
import { passagesOf } from "../speech/captions.js";
import { WordTrack } from "../speech/words.js";
import { t } from "../texts.js";

const MAX_PART = 50_000; // characters of one request for an MP3 file
const HEADER_BYTES = 44;

/**
 * Resolves with the file's parts, for a Blob; rejects with a SpeechError, or an AbortError.
 * @param {{server, book, request, signal, progress(share)}} order `request` has the settings
 */
export function makeMp3({ server, book, request, signal, progress }) {
  return collect(book, async (from, to) => {
    const response = await server.request("v1/audio/speech", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ ...request, input: book.text.slice(from, to), response_format: "mp3" }),
      signal,
    });
    progress(from / book.length);
    return response.blob();
  });
}

async function collect(book, fetchPart) {
  const parts = [];
  for (let from = 0; from < book.length; ) {
    const to = endOfPart(book, from);
    parts.push(await fetchPart(from, to));
    from = to;
  }
  return parts;
}

function endOfPart(book, from) {
  if (book.length - from <= MAX_PART) return book.length;
  return book.blocks[book.indexAt(from + MAX_PART)].from;
}

/** As `makeMp3`. */
export async function makeWav(order) {
  const sound = await record(order, true);
  const bytes = sound.parts.reduce((sum, { size }) => sum + size, 0);
  const header = encodeWav(new Int16Array(0), sound.sampleRate, sound.channels);
  const view = new DataView(header.buffer);
  view.setUint32(4, HEADER_BYTES - 8 + bytes, true);
  view.setUint32(40, bytes, true);
  return [header, ...sound.parts];
}

/** As `makeMp3`. */
export async function makeSrt(order) {
  const { words } = await record(order, false);
  if (words.all.length === 0) {
    throw new SpeechError(t("When the words are said is not known with this model: save it as MP3."));
  }
  return [writeSrt(passagesOf(order.book.text, words.all))];
}

// Speaks all of it, piece by piece, as the reader does.
async function record({ server, book, request, signal, progress }, keepsSound) {
  const session = new SpeechSession(server);
  const made = { parts: [], words: new WordTrack(), sampleRate: 24_000, channels: 1, frames: 0 };
  signal.addEventListener("abort", () => session.close());
  try {
    for (let piece = book.pieceAt(0); piece !== null; piece = book.pieceAt(piece.to)) {
      progress(piece.from / book.length);
      const sound = await speakPiece(session, { piece, request, signal }, made);
      const silence = Math.round(piece.gapSeconds * made.sampleRate) * made.channels;
      made.frames += silence / made.channels;
      if (keepsSound) made.parts.push(new Blob([...sound, new Int16Array(silence)]));
    }
  } finally {
    session.close();
  }
  return made;
}

function speakPiece(session, { piece, request, signal }, made) {
  const sound = [];
  let utteranceFrame = made.frames;
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    session.begin({ ...request, timestamps: true }, {
      started: ({ sample_rate: sampleRate, channels = 1 }) => {
        Object.assign(made, { sampleRate, channels });
        utteranceFrame = made.frames;
      },
      audio: (samples) => {
        made.frames += samples.length / made.channels;
        sound.push(samples);
      },
      words: ({ words }) => {
        const atSeconds = utteranceFrame / made.sampleRate;
        made.words.add(words, { sent: piece.text, base: piece.from, atSeconds });
      },
      finished: () => {},
      spoken: () => resolve(sound),
      failed: reject,
    });
    session.write(piece.text);
    session.commit();
  });
}
