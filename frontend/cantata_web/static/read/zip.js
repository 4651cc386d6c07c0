// A zip archive's files, each read and inflated when it is asked for: nothing else is loaded.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const END_BYTES = 22;
const MAX_COMMENT = 65_535;
const ENTRY_BYTES = 46;
const LOCAL_BYTES = 30;
const STORED = 0;
const DEFLATED = 8;
const ENCRYPTED = 1;
const BROKEN = t("The file is damaged or is no EPUB. Download it again.");

export class Zip {
  #file;
  #entries;

  /** Resolves with the archive in a file; rejects with a SpeechError. @param {Blob} file */
  static async open(file) {
    const tailFrom = Math.max(0, file.size - END_BYTES - MAX_COMMENT);
    const tail = await view(file, tailFrom, file.size);
    let at = tail.byteLength - END_BYTES;
    while (at >= 0 && tail.getUint32(at, true) !== END) at -= 1;
    if (at < 0) throw new SpeechError(BROKEN);
    const [bytes, from] = [tail.getUint32(at + 12, true), tail.getUint32(at + 16, true)];
    if (from + bytes > file.size) throw new SpeechError(BROKEN);
    return new Zip(file, readEntries(await view(file, from, from + bytes)));
  }

  constructor(file, entries) {
    this.#file = file;
    this.#entries = entries;
  }

  has(name) {
    return this.#entries.has(name);
  }

  /** Whether a file needs a password. */
  get encrypted() {
    return [...this.#entries.values()].some(({ flags }) => flags & ENCRYPTED);
  }

  /** A file's bytes. @param {number} most that it may have */
  async read(name, most) {
    const entry = this.#entries.get(name);
    if (entry === undefined) throw new SpeechError(BROKEN);
    const head = await view(this.#file, entry.at, entry.at + LOCAL_BYTES);
    const from = entry.at + LOCAL_BYTES + head.getUint16(26, true) + head.getUint16(28, true);
    const packed = this.#file.slice(from, from + entry.bytes);
    if (entry.method === STORED) return collect(packed.stream(), most);
    if (entry.method !== DEFLATED) throw new SpeechError(BROKEN);
    return collect(packed.stream().pipeThrough(new DecompressionStream("deflate-raw")), most);
  }
}

async function view(file, from, to) {
  const bytes = await file.slice(from, to).arrayBuffer();
  if (bytes.byteLength < to - from) throw new SpeechError(BROKEN);
  return new DataView(bytes);
}

function readEntries(directory) {
  const entries = new Map();
  let at = 0;
  while (at + ENTRY_BYTES <= directory.byteLength && directory.getUint32(at, true) === ENTRY) {
    const short = (offset) => directory.getUint16(at + offset, true);
    const [name, extra, comment] = [short(28), short(30), short(32)];
    const bytes = new Uint8Array(directory.buffer, at + ENTRY_BYTES, name);
    entries.set(new TextDecoder().decode(bytes), {
      flags: short(8),
      method: short(10),
      bytes: directory.getUint32(at + 20, true),
      at: directory.getUint32(at + 42, true),
    });
    at += ENTRY_BYTES + name + extra + comment;
  }
  return entries;
}

// A few bytes may inflate to any length.
async function collect(stream, most) {
  const parts = [];
  let bytes = 0;
  try {
    for (const reader = stream.getReader(); ; ) {
      const { done, value } = await reader.read();
      if (done) return new Blob(parts).arrayBuffer();
      bytes += value.length;
      if (bytes > most) {
        await reader.cancel();
        break;
      }
      parts.push(value);
    }
  } catch {
    throw new SpeechError(BROKEN);
  }
  throw new SpeechError(t("A chapter of this book is too long to be opened here."));
}
