const MAX_NAME = 48; // characters

/** A file's name from the first words of a text; "cantata" if it has none. */
export function nameFile(text) {
  const words = text.slice(0, 4 * MAX_NAME).match(/[\p{L}\p{M}\p{N}][\p{L}\p{M}\p{N}'’]*/gu) ?? [];
  let name = "";
  for (const word of words) {
    const longer = name === "" ? word : `${name} ${word}`;
    if (longer.length > MAX_NAME) break;
    name = longer;
  }
  return name || words[0]?.slice(0, MAX_NAME) || "cantata";
}

/** Hands a file to the browser's downloads. */
export function save(bytes, extension, type, name = "cantata") {
  saveFile(new Blob([bytes], { type }), `${name}.${extension}`);
}

/** @param {string} name with its extension */
export function saveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // Not at once: Firefox and Safari begin to read it after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
