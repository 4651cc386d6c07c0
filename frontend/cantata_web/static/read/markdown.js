// Markdown as blocks: {kind: "heading" | "text", text}.

const FENCE = /^(?: {0,3}>)*[ \t]{0,12}(`{3,}(?=[^`]*$)|~{3,})/;
const HEADING = /^ {0,3}#{1,6}[ \t]+/;
const UNDERLINE = /^ {0,3}(?:=+|-{2,})[ \t]*$/;
const ITEM = /^([ \t]*)(?:[-*+]|(\d{1,9})([.)]))[ \t]+(?:\[[ xX]\][ \t]+)?(.*)$/;
const QUOTED = /^[ \t]{0,3}(?:> ?)+/;
const RULE_OF_TABLE = /^[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t:|-]*)?$/;
const FOOTNOTE = /^\[\^[^\]\s]+\]:[ \t]*/;
const LINK_DEFINED = /^ {0,3}\[(?!\^)[^\]]+\]:[ \t]*(?:<[^<>]*>|\S*[:/#]\S*)(?:[ \t]+["'(].*)?$/;

/** What is read of it: neither its marks nor its code. Numbered items keep their numbers. */
export function markdownBlocks(source) {
  const text = source.replace(/\r\n?/g, "\n").replace(/^---\n[^]*?\n---\n/, ""); // what describes the file
  const reader = new BlockReader();
  for (const line of withoutCode(withoutComments(text).split("\n"))) reader.read(line);
  reader.close();
  return reader.blocks;
}

function withoutComments(text) {
  const [before, ...comments] = text.split("<!--");
  const end = "-->";
  const after = comments.map((one) => (one.includes(end) ? one.slice(one.indexOf(end) + end.length) : ""));
  return before + after.join("");
}

function* withoutCode(lines) {
  let fence = "";
  for (const line of lines) {
    const marks = FENCE.exec(line)?.[1] ?? "";
    if (fence !== "") {
      if (marks.startsWith(fence) && line.replace(QUOTED, "").trim() === marks) fence = "";
    } else {
      fence = marks;
      yield marks === "" ? line : "";
    }
  }
}

class BlockReader {
  blocks = [];
  #lines = []; // of the block that is open
  #lead = ""; // the number of its item
  #isItem = false;
  #isQuoted = false;
  #lists = []; // around it: {indent, mark, next}; `next` is the number of the next item

  read(line) {
    const quoted = QUOTED.exec(line);
    if (quoted !== null && !this.#isQuoted) this.close();
    if (quoted !== null || line.trim() === "") this.#isQuoted = quoted !== null;
    const inner = quoted === null ? line : line.slice(quoted[0].length);
    if (inner.trim() === "") {
      this.close();
    } else if (UNDERLINE.test(inner) && this.#lines.length > 0 && !this.#isItem) {
      this.#close("heading");
    } else if (!RULE_OF_TABLE.test(inner) && !LINK_DEFINED.test(inner)) {
      this.#readText(inner);
    }
  }

  close() {
    this.#close("text");
  }

  #readText(line) {
    const heading = HEADING.exec(line);
    const item = ITEM.exec(line);
    if (heading !== null) {
      this.close();
      this.#lists = [];
      this.#lines.push(line.slice(heading[0].length).trimEnd().replace(/[ \t]#+$/, ""));
      this.#close("heading");
    } else if (item !== null && this.#begins(item[2])) {
      this.close();
      this.#lead = this.#count(item[1].length, item[2], item[3]);
      this.#isItem = true;
      this.#lines.push(item[4]);
    } else if (/^[ \t]*\|/.test(line)) {
      this.close();
      this.#lines.push(line.split("|").map((cell) => cell.trim()).filter(Boolean).join(", "));
      this.close();
    } else {
      if (FOOTNOTE.test(line)) this.close();
      if (this.#lines.length === 0 && !/^[ \t]{2}/.test(line)) this.#lists = [];
      this.#lines.push(line.replace(FOOTNOTE, ""));
    }
  }

  /** Whether an item begins here: a year at the start of a paragraph's line is none. */
  #begins(number) {
    return number === undefined || Number(number) === 1 || this.#lines.length === 0 || this.#isItem;
  }

  /** The number of an item, as Markdown counts it; empty without one. */
  #count(indent, number, mark) {
    while (this.#lists.length > 0 && this.#lists.at(-1).indent > indent) this.#lists.pop();
    let list = this.#lists.at(-1);
    if (list === undefined || list.indent < indent - 1 || list.mark !== mark) {
      if (list?.indent >= indent - 1) this.#lists.pop();
      list = { indent, mark, next: Number(number) };
      this.#lists.push(list);
    }
    return mark === undefined ? "" : `${list.next++}. `;
  }

  #close(kind) {
    const text = withoutMarks(this.#lines.join(" ")).replace(/\s+/g, " ").trim();
    if (/[\p{L}\p{N}]/u.test(text)) this.blocks.push({ kind, text: this.#lead + text });
    this.#lines = [];
    this.#lead = "";
    this.#isItem = false;
  }
}

// A file may be nothing but marks: no repetition passes over what another one could begin with.
function withoutMarks(text) {
  return text
    .replace(/\[\^[^[\]\s]+\]/g, "") // where a footnote belongs
    .replace(/!\[([^[\]]*)\]\([^()]*\)/g, "$1")
    .replace(/\[([^[\]]*)\](?:\([^()]*(?:\([^()]*\)[^()]*)?\)|\[[^[\]]*\])/g, "$1")
    .replace(/<((?:https?|mailto):[^<>\s]+)>/g, "$1")
    .replace(/(\*\*|__|~~|`{1,9})(?![*_~`])(\S(?:[^]{0,2000}?\S)?)\1/g, "$2")
    .replace(/(^|[^\w*])[*_](\S(?:[^*_]*?\S)?)[*_](?![\w*])/g, "$1$2")
    .replace(/<\/?[a-z][^<>]*>/gi, "")
    .replaceAll("|", " ")
    .replace(/&(?:#\d+|#x[\da-f]+|[a-z][a-z\d]*);/gi, decodeEntity);
}

function decodeEntity(entity) {
  const box = document.createElement("textarea");
  box.innerHTML = entity;
  return box.value;
}
