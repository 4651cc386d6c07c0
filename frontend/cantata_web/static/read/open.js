// Texts and files as books. What cannot be read is refused with a sentence that says what to do.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";
import { Book } from "./book.js";
import { readEpub } from "./epub.js";
import { htmlBlocks, plainBlocks } from "./formats.js";
import { MAX_CHARACTERS } from "./limits.js";
import { markdownBlocks } from "./markdown.js";

/** The code of an error that says that a text is too long. */
export const TOO_LONG = "too_long";
const MAX_TEXT_BYTES = 16 * MAX_CHARACTERS; // of a file of text, with its marks
const TAKEN = ".txt, .md, .html, .epub";
const READERS = {
  txt: plainBlocks,
  text: plainBlocks,
  md: markdownBlocks,
  markdown: markdownBlocks,
  html: (text) => htmlBlocks(new DOMParser().parseFromString(text, "text/html")),
};
READERS.htm = READERS.xhtml = READERS.html;

/** The book of a text that was typed or pasted. */
export function bookOf(text) {
  checkLength(text);
  return made("", plainBlocks(text));
}

/** Resolves with the book in a file; rejects with a SpeechError. @param {File} file */
export async function openFile(file) {
  const extension = /\.([^.]+)$/.exec(file.name)?.[1].toLowerCase() ?? "";
  const name = file.name.replace(/\.[^.]*$/, "");
  if (extension === "epub") {
    const book = await readEpub(file, checkSum);
    return made(book.name || name, book.blocks);
  }
  if (extension === "pdf") {
    throw new SpeechError(
      t("“{name}” is a PDF: “Audiobooks”, below, takes it. Here: {taken}.", {
        name: file.name,
        taken: TAKEN,
      }),
    );
  }
  const read = READERS[extension];
  if (read === undefined) {
    throw new SpeechError(
      t("“{name}” cannot be read here. Choose a file of these kinds: {taken}.", {
        name: file.name,
        taken: TAKEN,
      }),
    );
  }
  if (file.size > MAX_TEXT_BYTES) {
    const most = Math.floor(MAX_TEXT_BYTES / 1e6);
    throw new SpeechError(
      t("“{name}” is too large: at most {most} MB. Open a part of it.", { name: file.name, most }),
    );
  }
  const text = decode(await bytesOf(file));
  if (text.includes("\0")) {
    throw new SpeechError(
      t("“{name}” is no text, whatever its name says. Save it as UTF-8, or choose another file.", {
        name: file.name,
      }),
    );
  }
  return made(name, read(text));
}

/** Why something that was dropped is not opened; null if it is. */
export function whyNot({ file, isFolder }) {
  if (isFolder) return t("This is a folder. Drop one file of it: {taken}.", { taken: TAKEN });
  if (!file) return t("There is no file in it. Drop a file of these kinds: {taken}.", { taken: TAKEN });
  return null;
}

async function bytesOf(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new SpeechError(t("“{name}” cannot be read any more. Choose it again.", file));
  }
}

function decode(bytes) {
  const [first, second] = new Uint8Array(bytes, 0, Math.min(2, bytes.byteLength));
  if (first === 0xff && second === 0xfe) return new TextDecoder("utf-16le").decode(bytes);
  if (first === 0xfe && second === 0xff) return new TextDecoder("utf-16be").decode(bytes);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return new TextDecoder("windows-1252").decode(bytes);
  }
}

function checkLength(text) {
  if (text.length <= MAX_CHARACTERS) return;
  const values = { characters: Array.from(text).length, most: MAX_CHARACTERS };
  throw new SpeechError(
    t("The text has {characters} characters; the reader takes {most} at a time. Open a part of it.", values),
    { code: TOO_LONG },
  );
}

// Of a book that is still being read: nobody knows yet how long it is.
function checkSum(characters) {
  if (characters <= MAX_CHARACTERS) return;
  throw new SpeechError(
    t("The book has more than {most} characters, which is all that the reader takes. Open a part of it.", {
      most: MAX_CHARACTERS,
    }),
    { code: TOO_LONG },
  );
}

function made(name, blocks) {
  const book = new Book(name, blocks);
  checkLength(book.text);
  if (!/[\p{L}\p{N}]/u.test(book.text)) throw new SpeechError(t("There are no words in it."));
  return book;
}
