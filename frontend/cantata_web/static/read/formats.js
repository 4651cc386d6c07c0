// Texts and pages as blocks: {kind: "heading" | "text", text}.

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

/** @param {Document} page */
export function htmlBlocks(page) {
  for (const one of page.querySelectorAll(SKIPPED)) one.remove();
  const main = page.querySelector("main, article") ?? page.body ?? page.documentElement;
  const blocks = [];
  let open = { kind: "text", text: "" };
  let lead = ""; // the number of an item, until its text comes
  const close = (kind) => {
    const text = tidy(open.text);
    if (text !== "") {
      blocks.push({ kind: open.kind, text: lead + text });
      lead = "";
    }
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
    let number = name === "OL" ? firstNumber(node) : null;
    for (const child of node.childNodes) {
      const isItem = child.nodeName.toUpperCase() === "LI";
      if (isItem && number !== null) {
        close(inside);
        number = Number.parseInt(child.getAttribute("value") ?? number, 10);
        lead = `${number++}. `;
      }
      visit(child, inside);
      if (isItem) lead = "";
    }
    if (BLOCKS.has(name)) close(kind);
  };
  visit(main, "text");
  close("text");
  return blocks;
}

/** Of a list's items; null if it shows none. */
function firstNumber(list) {
  if (/list-style[^;]*none/.test(list.getAttribute("style") ?? "")) return null;
  return Number.parseInt(list.getAttribute("start") ?? 1, 10) || 1;
}

function tidy(text) {
  return text.replace(/[\s\u00ad]+/g, (gap) => (gap === "\u00ad" ? "" : " ")).trim();
}
