// Pictures for a request: as data URLs, no larger than models look at.

import { SpeechError } from "../api/errors.js";
import { t } from "../texts.js";

const MAX_SIDE = 1_280; // pixels
const QUALITY = 0.9;

/** Resolves with a data URL; rejects with a SpeechError. @param {File} file */
export async function readPicture(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new SpeechError(t("“{name}” is not a picture that this browser can read.", file));
  }
  const scale = Math.min(1, MAX_SIDE / Math.max(bitmap.width, bitmap.height));
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const drawing = canvas.getContext("2d");
  drawing.fillStyle = "#fff"; // what is transparent
  drawing.fillRect(0, 0, canvas.width, canvas.height);
  drawing.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas.toDataURL("image/jpeg", QUALITY);
}

/** Resolves with a Blob as base64. */
export async function readBase64(blob) {
  const reader = new FileReader();
  const read = new Promise((resolve) => reader.addEventListener("load", resolve, { once: true }));
  reader.readAsDataURL(blob);
  await read;
  return reader.result.slice(reader.result.indexOf(",") + 1);
}
