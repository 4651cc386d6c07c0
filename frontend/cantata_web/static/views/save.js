/** Hands a file to the browser's downloads. */
export function save(bytes, extension, type, name = "cantata") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([bytes], { type }));
  link.download = `${name}.${extension}`;
  link.click();
  // Not at once: Firefox and Safari begin to read it after the click has been handled.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
