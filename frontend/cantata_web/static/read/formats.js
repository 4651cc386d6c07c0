// Texts of several formats as blocks: {kind: "heading" | "text", text}.

const SKIPPED = "script, style, noscript, template, nav, svg, math, head, rt, [hidden], [aria-hidden='true']";
const HEADINGS = new Set(["H1", "H2", "H3", "H4", "H5", "H6"]);
const BLOCKS = new Set(
  ("ADDRESS ARTICLE ASIDE BLOCKQUOTE BODY DD DIV DL DT FIGCAPTION FIGURE FOOTER FORM HEADER HR LI MAIN OL " +
    "P PRE SECTION TABLE TD TH TR UL H1 H2 H3 H4 H5 H6").split(" "),
);

/** Paragraphs end at blank lines, or at every line where there are none. */
export function plainBlocks(text) {
  const lines = text.replace(/\r\n?/g, "\n").trim();
  const parts = lines.split(/\n\s*\n/.test(lines) ? /\n\s*\n+/ : /\n/);
  return parts.map(tidy).filter(Boolean).map((part) => ({ kind: "text", text: part }));
}

/** What is read of Markdown: neither its marks nor its code. */
export function markdownBlocks(source) {
  const blocks = [];
  const text = source
    .replace(/\r\n?/g, "\n")
    .replace(/^---\n[^]*?\n---\n/, "") // what describes the file
    .replace(/^(```|~~~)[^]*?^\1.*$/gm, "")
    .replace(/<!--[^]*?-->/g, "")
    .replace(/^(.+)\n(=+|-{2,})$/gm, "# $1")
    .replace(/^(#{1,6} .*)$/gm, "\n$1\n")
    .replace(/^\[\^[^\]\s]+\]:\s*/gm, "\n") // a footnote
    .replace(/^\s*([-*+]|\d+[.)])\s+/gm, "\n");
  for (const part of text.split(/\n\s*\n+/)) {
    const heading = /^\s*#{1,6} /.test(part);
    const said = tidy(withoutMarks(part));
    if (/[\p{L}\p{N}]/u.test(said)) blocks.push({ kind: heading ? "heading" : "text", text: said });
  }
  return blocks;
}

function withoutMarks(part) {
  return part
    .replace(/^\s*#{1,6} +|^\s*(?:> ?)+/gm, "")
    .replace(/ #+$/gm, "")
    .replace(/^\s*\|?[\s:|-]+\|?\s*$/gm, "") // below a table's head
    .replace(/\[\^[^\]\s]+\]/g, "") // where a footnote belongs
    .replace(/!\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])/g, "$1")
    .replace(/(\*\*|__|~~|`+)(\S(?:[^]*?\S)?)\1/g, "$2")
    .replace(/(^|[^\w*])[*_](\S(?:[^*_]*?\S)?)[*_](?![\w*])/g, "$1$2")
    .replace(/<\/?[a-z][^>]*>/gi, "")
    .replaceAll("|", " ")
    .replace(/&(?:#\d+|#x[\da-f]+|[a-z][a-z\d]*);/gi, decodeEntity);
}

function decodeEntity(entity) {
  const box = document.createElement("textarea");
  box.innerHTML = entity;
  return box.value;
}

/** @param {Document} page */
export function htmlBlocks(page) {
  for (const one of page.querySelectorAll(SKIPPED)) one.remove();
  const main = page.querySelector("main, article") ?? page.body ?? page.documentElement;
  const blocks = [];
  let open = { kind: "text", text: "" };
  const close = (kind) => {
    const text = tidy(open.text);
    if (text !== "") blocks.push({ kind: open.kind, text });
    open = { kind, text: "" };
  };
  const visit = (node, kind) => {
    if (node.nodeType === Node.TEXT_NODE || node.nodeType === Node.CDATA_SECTION_NODE) {
      open.text += node.data;
      return;
    }
    const name = node.nodeName.toUpperCase();
    if (name === "BR") open.text += " ";
    const inside = HEADINGS.has(name) ? "heading" : kind;
    if (BLOCKS.has(name)) close(inside);
    node.childNodes.forEach((child) => visit(child, inside));
    if (BLOCKS.has(name)) close(kind);
  };
  visit(main, "text");
  close("text");
  return blocks;
}

function tidy(text) {
  return text.replace(/[\s\u00ad]+/g, (gap) => (gap === "\u00ad" ? "" : " ")).trim();
}
