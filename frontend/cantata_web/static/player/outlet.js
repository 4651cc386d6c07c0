// Where the sound leaves the page: an object with `send(message, transfer)` in front of a Renderer.

import { Renderer } from "./renderer.js";

const BLOCK_FRAMES = 1024;
const OUTPUT_CHANNELS = 2; // one channel of sound goes to both

/**
 * Resolves with an outlet; `receive` is given the Renderer's messages, and `connect` the node from
 * which the sound comes.
 */
export async function openOutlet(context, receive, connect) {
  if (context.audioWorklet === undefined) return openOnPageThread(context, receive, connect);
  await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
  const node = new AudioWorkletNode(context, "cantata-player", {
    numberOfInputs: 0,
    outputChannelCount: [OUTPUT_CHANNELS],
  });
  node.port.onmessage = ({ data }) => receive(data);
  connect(node);
  return { send: (message, transfer) => node.port.postMessage(message, transfer) };
}

// WHY: browsers withhold AudioWorklet from pages that come over plain HTTP from another machine,
// which is how a server in the living room is used. SCOPE: the old node runs on the page's thread,
// so a busy page can make it stutter. It can go when such pages get worklets.
function openOnPageThread(context, receive, connect) {
  const node = context.createScriptProcessor(BLOCK_FRAMES, 0, OUTPUT_CHANNELS);
  const renderer = new Renderer(receive, context.sampleRate);
  node.onaudioprocess = ({ outputBuffer, playbackTime }) => {
    const channels = Array.from({ length: OUTPUT_CHANNELS }, (_, channel) =>
      outputBuffer.getChannelData(channel),
    );
    renderer.render(channels, playbackTime);
  };
  connect(node);
  // The outlet keeps the node: browsers collect a script node without references.
  return { node, send: (message) => renderer.receive(message) };
}
