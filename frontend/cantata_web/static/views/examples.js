// Example texts.

import { speakerTag } from "../offer/words.js";
import { t } from "../texts.js";
import { element } from "./elements.js";

export const EXAMPLES = [
  { name: t("A fox"), text: "The quick brown fox jumps over the lazy dog." },
  {
    name: t("A harbour"),
    text:
      "It rained all night, but by the time we reached the harbour the sky had cleared, " +
      "and the boats were going out.",
  },
  {
    name: t("Numbers"),
    text:
      "On 3 May 2024 the 9:45 train took 3,497 passengers to St. Ives for $12.50 each, " +
      "and Dr. Reed says that 2/3 of them came back.",
  },
  { name: t("A pause"), text: "And the winner of this year's prize is [pause 1.5s] the whole choir." },
  {
    name: t("A question"),
    text: "Could you tell me where the music comes from? I never said she stole it.",
  },
  {
    name: t("A long read"),
    text: [
      "The old lighthouse stood at the end of the bay, where the road gave up and the gulls " +
        "took over.",
      "Nobody had lived in it since the lamp was made to turn by itself, forty years ago, but " +
        "every Sunday a woman from the village walked out along the wall, unlocked the door, and " +
        "wound the clock in the kitchen.",
      "When people asked her why, she said that a house should know what time it is. " +
        "Some of them laughed. Her neighbour, who repaired boats, did not: he had noticed that " +
        "in the weeks when she was ill the fog came earlier, and stayed.",
      "One winter the council decided to sell the place. Two men came with a long tape and a " +
        "short list. They measured the stairs, the windows and the wall, and wrote down that " +
        "the clock was running. Then they looked at each other, for neither of them had wound " +
        "it, and it was not yet Sunday.",
    ].join("\n\n"),
  },
];

const DIALOGUE = ["Who is there?", "It is the neighbour.", "Come in, the door is open."];

/** A button for each; `choose(text)` is called with what it stands for. */
export function exampleButtons(choose) {
  return EXAMPLES.map(({ name, text }) => exampleButton(name, () => choose(text)));
}

/** One for a text of two speakers, in the tags that `pattern()` has at that time. */
export function dialogueButton(pattern, choose) {
  return exampleButton(t("Two speakers"), () => {
    const turns = DIALOGUE.map((line, turn) => speakerTag(pattern(), turn % 2) + line);
    choose(turns.join("\n"));
  });
}

function exampleButton(name, act) {
  const made = element("button", name);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}
