// The words of an EPUB, in the order in which they are read.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";
import { htmlBlocks } from "./formats.js";
import { Zip } from "./zip.js";

const MAX_CHAPTER_BYTES = 8 * 2 ** 20;
// These hide fonts from those who would copy them; the words stay open.
const FONTS_ONLY = ["http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC"];

/**
 * Resolves with {name, blocks}; rejects with a SpeechError.
 * @param {(characters) => void} check throws if there are too many by now
 */
export async function readEpub(file, check) {
  const zip = await Zip.open(file);
  if (zip.encrypted || (await isLocked(zip))) {
    throw new SpeechError(
      t("This book is encrypted, so that only its seller's app opens it. Choose one without DRM."),
    );
  }
  const parse = async (name, type) =>
    new DOMParser().parseFromString(new TextDecoder().decode(await zip.read(name, MAX_CHAPTER_BYTES)), type);
  const container = await parse("META-INF/container.xml", "text/xml");
  const path = container.getElementsByTagNameNS("*", "rootfile")[0]?.getAttribute("full-path") ?? "";
  const book = await parse(path, "text/xml");
  const all = (tag) => [...book.getElementsByTagNameNS("*", tag)];
  const items = new Map(all("item").map((item) => [item.id || item.getAttribute("id"), item]));
  const blocks = [];
  let characters = 0;
  for (const reference of all("itemref")) {
    const item = items.get(reference.getAttribute("idref"));
    const href = item?.getAttribute("href");
    const isContents = item?.getAttribute("properties")?.includes("nav");
    if (!href || isContents || reference.getAttribute("linear") === "no") continue;
    const name = decodeURIComponent(new URL(href, `https://book/${path}`).pathname.slice(1));
    if (!zip.has(name)) continue;
    const chapter = htmlBlocks(await parse(name, "text/html"));
    characters += chapter.reduce((sum, { text }) => sum + text.length, 0);
    check(characters);
    blocks.push(...chapter);
  }
  return { name: all("title")[0]?.textContent.trim() ?? "", blocks };
}

async function isLocked(zip) {
  if (!zip.has("META-INF/encryption.xml")) return false;
  const bytes = await zip.read("META-INF/encryption.xml", MAX_CHAPTER_BYTES);
  const list = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "text/xml");
  return [...list.getElementsByTagNameNS("*", "EncryptedData")].some((one) => {
    const method = one.getElementsByTagNameNS("*", "EncryptionMethod")[0];
    return !FONTS_ONLY.includes(method?.getAttribute("Algorithm"));
  });
}
