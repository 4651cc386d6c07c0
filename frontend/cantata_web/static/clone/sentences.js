// Sentences to read aloud: eight to twelve seconds each, with most of the sounds of English.

export const SENTENCES = [
  "The harbour was quiet that morning. A few small boats rocked gently, and somewhere above them " +
    "a child was asking, very loudly, why the sea never gets tired.",
  "On Thursday we usually choose five yellow pears, a jar of good honey and some fresh bread, " +
    "then join our neighbours for a long, noisy lunch outside.",
  "Would you believe that the old clock still works? My father fixed its spring with a paper clip, " +
    "shook it twice, and it has been ticking beautifully ever since.",
];
