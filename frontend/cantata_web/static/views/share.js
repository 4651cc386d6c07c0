// Links to a text with its settings: made by a button, and followed when the page opens.

import { askedBy, linkTo, withoutAsked } from "../kept/link.js";
import { t } from "../texts.js";
import { copyText } from "./clipboard.js";
import { statusLine } from "./status.js";

const MAX_LINK_CHARACTERS = 16_000; // servers and proxies reject longer addresses
const SHOWN_CHARACTERS = 60;

/** A button that copies the link. `request()` is the text and the settings as they are now. */
export function offerLink(root, request) {
  const show = statusLine(root.querySelector("[data-role='share-status']"));
  root.querySelector("[data-role='copy-link']").addEventListener("click", async () => {
    const { input: text, ...settings } = request();
    const whole = linkTo(location, { text, ...settings }).href;
    const short = whole.length <= MAX_LINK_CHARACTERS;
    const link = short ? whole : linkTo(location, settings).href;
    const copied = await copyText(link);
    if (!copied) show(t("The browser did not allow copying."), true);
    else if (short) show(t("The link is copied."));
    else show(t("The text is too long for a link: the link has the settings only."), true);
  });
}

/**
 * Fills the page with what its address asks for, and removes that from the address, so that a
 * reload keeps later changes. What cannot be followed is named in a notice.
 */
export function followLink(root, { text, settings, choices }) {
  const { text: wanted, ...asked } = askedBy(new URL(location.href));
  if (wanted === undefined && Object.keys(asked).length === 0) return;
  const forget = (names) => {
    history.replaceState(history.state, "", withoutAsked(location.href, names));
  };
  forget(["text"]);
  const notice = new LinkNotice(root.querySelector("[data-role='link-notice']"));
  if (wanted !== undefined) {
    const before = text.own;
    text.value = wanted;
    if (before !== null && before !== wanted) notice.offerBack(() => (text.value = before));
  }
  // The lists say what is offered. Until they have come, a reload asks again.
  const follow = () => {
    forget(Object.keys(asked));
    for (const problem of settings.follow(asked)) notice.add(problem);
  };
  choices.addEventListener("change", follow, { once: true });
}

class LinkNotice {
  #element;

  constructor(element) {
    this.#element = element;
    this.#button("dismiss").addEventListener("click", () => (element.hidden = true));
  }

  /** @param {{name, value, valid}} problem */
  add({ name, value, valid }) {
    const shown = value.length > SHOWN_CHARACTERS ? `${value.slice(0, SHOWN_CHARACTERS)}…` : value;
    this.#say(
      t("The link asks for the {name} “{shown}”, which is not offered. Valid: {valid}.", {
        name,
        shown,
        valid,
      }),
    );
  }

  offerBack(bringBack) {
    this.#say(t("The link has replaced your text."));
    const button = this.#button("bring-back");
    button.hidden = false;
    button.addEventListener("click", () => {
      bringBack();
      this.#element.hidden = true;
    });
  }

  #button(role) {
    return this.#element.querySelector(`[data-role="${role}"]`);
  }

  #say(sentence) {
    const line = document.createElement("p");
    line.textContent = sentence;
    this.#element.querySelector("[data-role='link-problems']").append(line);
    this.#element.hidden = false;
  }
}
