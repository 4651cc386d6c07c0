// Of a talk.

export const TalkState = Object.freeze({
  OFF: "off", // not connected
  CONNECTING: "connecting",
  LISTENING: "listening",
  HEARING: "hearing", // the user speaks
  THINKING: "thinking", // the user has spoken; no sound of the answer has come
  SPEAKING: "speaking",
  LOST: "lost", // the connection broke and will be tried again
});
