// The page: joins the markup to the server and the views to each other.

import { Connection } from "./api/connection.js";
import { KeyStore, keyDialog } from "./api/keys.js";
import { Server } from "./api/server.js";
import { UploadedVoices } from "./clone/voices.js";
import { Painters } from "./draw/painters.js";
import { Studio } from "./draw/studio.js";
import { Catalogue } from "./offer/catalogue.js";
import { BrowserStore } from "./kept/browserstore.js";
import { Readings } from "./speech/readings.js";
import { openTakes } from "./kept/takes.js";
import { Speaker } from "./speech/speaker.js";
import { State } from "./speech/states.js";
import { openTalk, TalkReadings } from "./talk/open.js";
import { TalkState } from "./talk/states.js";
import { t } from "./texts.js";
import { Answerer } from "./views/answerer.js";
import { Choices } from "./views/choices.js";
import { CloneView } from "./views/clone.js";
import { confirmDialog } from "./views/confirm.js";
import { DrawView } from "./views/draw.js";
import { Hush } from "./views/hush.js";
import { LateTab } from "./views/latetab.js";
import { ListenView } from "./views/listen.js";
import { ServerNotice } from "./views/notice.js";
import { NowPlaying } from "./views/nowplaying.js";
import { OfferView } from "./views/offer.js";
import { Settings } from "./views/settings.js";
import { Preview } from "./views/preview.js";
import { followLink, offerLink } from "./views/share.js";
import { SpeakView } from "./views/speak.js";
import { refuseStrays, takeDrops } from "./views/strays.js";
import { startTabs } from "./views/tabs.js";
import { TakesView } from "./views/takes.js";
import { TalkView } from "./views/talk.js";

function start(root) {
  const part = (name) => root.querySelector(`#cantata-${name}`);
  const base = new URL(root.dataset.apiBase || ".", document.baseURI);
  const dialog = root.querySelector("[data-role='key-dialog']");
  const server = new Server(base, new KeyStore(base), keyDialog(dialog));
  const store = new BrowserStore(base);
  const confirm = confirmDialog(root.querySelector("[data-role='confirm']"));

  const choices = new Choices(server);
  const catalogue = new Catalogue(server);
  const settings = new Settings(part("speak"), { choices, store });
  const speaker = new Speaker(server);
  const hush = new Hush(root);
  // Before the views: they change their status lines at the same events.
  const answerer = new Answerer(part("talk"), { settings, catalogue });
  const { talk, line, voice, microphone } = openTalk(server, () => answerer.choice);
  const context = { server, settings, store, choices, catalogue, confirm };
  Object.assign(context, { talk, line, voice, microphone });
  const late = openLate(part, context);
  const listen = new ListenView(part("listen"), { server, catalogue });
  const latelyHeard = () => Boolean(late.read.view?.reading || late.chat.view?.sounding);
  const hear = () => {
    const speaks = speaker.busy && speaker.state !== State.PAUSED;
    hush.set(speaks || voice.active || listen.playing || latelyHeard());
  };
  speaker.addEventListener("state", hear);
  talk.addEventListener("state", hear);
  listen.addEventListener("sound", hear);
  const speak = new SpeakView(part("speak"), { speaker, server, settings, store });
  for (const name of ["figures", "code"]) {
    part(name).closest("details").addEventListener("toggle", () => void late[name].open());
  }
  new NowPlaying(speaker, () => ({ text: speak.value, voice: settings.voiceName }));
  offerLink(part("speak"), () => speak.request);
  followLink(part("speak"), { text: speak, settings, choices });
  const body = () => ({
    ...speak.request,
    response_format: settings.format.isSubtitles ? "wav" : settings.format.id,
  });
  new TakesView(part("speak"), { speaker, speak, takes: openTakes(base), confirm });
  const preview = offerPreview(part("speak"), { server, settings, speaker, speak });
  new TalkView(part("talk"), { talk, voice, answerer });
  // One voice at a time, and none that the microphone would take for the user's.
  talk.addEventListener("state", () => {
    if (talk.state !== TalkState.CONNECTING) return;
    speaker.stop();
    preview.stop();
    listen.pause();
    late.read.view?.pause();
    late.chat.view?.stop();
  });
  const yieldTo = () => {
    talk.stop();
    listen.pause();
    late.read.view?.pause();
    late.chat.view?.stop();
  };
  speaker.addEventListener("begin", yieldTo);
  preview.addEventListener("change", () => {
    if (preview.playing !== null) yieldTo();
  });
  listen.addEventListener("begin", () => {
    talk.stop();
    speaker.stop();
    preview.stop();
    late.read.view?.pause();
    late.chat.view?.stop();
  });
  const quietFor = (name) => {
    late[name].addEventListener("open", ({ detail: view }) => {
      view.addEventListener("sound", hear);
      view.addEventListener("begin", () => {
        talk.stop();
        listen.pause();
        speaker.stop();
        preview.stop();
        if (name !== "read") late.read.view?.pause();
        if (name !== "chat") late.chat.view?.stop();
      });
    });
  };
  quietFor("read");
  quietFor("chat");
  quietFor("talkmore");
  for (const name of ["read", "lab"]) {
    late[name].addEventListener("open", ({ detail: view }) => view.watch(!part(name).hidden));
  }
  const painters = new Painters(server, catalogue);
  const studio = new Studio(server);
  const draw = new DrawView(part("draw"), { studio, painters, confirm });
  const tabs = startTabs(root, (name) => {
    if (Object.hasOwn(late, name)) void late[name].open();
    if (name === "talk") void late.talkmore.open();
    if (name === "clone") void clone.open();
    for (const watched of ["read", "lab"]) late[watched].view?.watch(name === watched);
    if (name === "draw") void painters.look();
    else painters.rest();
  });
  const read = async (give) => {
    tabs.show("read");
    const view = await late.read.open();
    if (view !== null) give(view);
  };
  speak.addEventListener("read", () => void read((view) => view.readText(speak.value)));
  for (const name of ["speak", "read"]) {
    takeDrops(part(name), (dropped) => void read((view) => view.takeDrop(dropped)));
  }
  const speakWith = (asked) => {
    tabs.show("speak");
    settings.follow(asked);
    part("text").focus();
  };
  const tryVoice = (voice) => speakWith({ voice });
  const uploads = new UploadedVoices(server, store);
  Object.assign(context, { preview, speak, speaker, speakWith, uploads, body });
  const clone = new CloneView(part("clone"), {
    choices,
    uploads,
    agreement: late.agreement,
    confirm,
    preview,
    tryVoice,
  });

  document.addEventListener("keydown", (event) => {
    if (root.querySelector("dialog[open]") !== null) return;
    if (event.key === "Escape") {
      speak.stop();
      talk.interrupt();
      late.lab.view?.stop();
      late.read.view?.pause();
      late.chat.view?.stop();
      preview.stop();
      if (!part("draw").hidden) studio.cancelAll();
      if (part("listen").hidden) listen.pause();
      else listen.stop();
    } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      if (!part("speak").hidden) speak.speak();
      if (!part("draw").hidden) draw.draw();
    }
  });
  refuseStrays(document);
  expose(speaker, { late, talk, voice, studio, listen });
  const offered = { choices, catalogue, view: new OfferView(root, { choices, catalogue, tabs }) };
  connect(server, offered, new ServerNotice(root.querySelector("[data-role='server']")));
}

// The tabs that are fetched when they are first opened.
function openLate(part, context) {
  return {
    read: new LateTab(part("read"), async () => {
      const { ReadView } = await import("./views/read.js");
      return (panel) => new ReadView(panel, context);
    }),
    chat: new LateTab(part("chat"), async () => {
      const { ChatView } = await import("./views/chat.js");
      return (panel) => new ChatView(panel, context);
    }),
    voices: new LateTab(part("voices"), async () => {
      const { VoicesView } = await import("./views/voices.js");
      return (panel) => new VoicesView(panel, context);
    }),
    talkmore: new LateTab(part("talkmore"), async () => {
      const { TalkMore } = await import("./views/talkmore.js");
      return (panel) => new TalkMore(panel, context);
    }),
    agreement: new LateTab(part("agreement"), async () => {
      const { Agreement } = await import("./views/agreement.js");
      const tick = part("clone").querySelector("[data-role='consented']");
      return (panel) => new Agreement(panel, { uploads: context.uploads, tick });
    }),
    code: new LateTab(part("code"), async () => {
      const { CodeView } = await import("./views/code.js");
      return (panel) => new CodeView(panel, context);
    }),
    figures: new LateTab(part("figures"), async () => {
      const { FiguresView } = await import("./views/figures.js");
      return (panel) => new FiguresView(panel, context);
    }),
    lab: new LateTab(part("lab"), async () => {
      const { LabView } = await import("./views/lab.js");
      return (panel) => new LabView(panel, context);
    }),
  };
}

function offerPreview(root, { server, settings, speaker, speak }) {
  const preview = new Preview(server, (sentence, isError) => speak.tell(sentence, isError));
  const button = root.querySelector("[data-role='preview']");
  const show = () => {
    const { voice } = settings;
    button.disabled = voice === undefined;
    const plays = voice !== undefined && preview.playing?.id === voice.id;
    button.textContent = plays
      ? t("Stop {name}", voice)
      : voice === undefined ? t("Hear this voice") : t("Hear {name}", voice);
  };
  button.addEventListener("click", () => {
    speaker.stop();
    void preview.toggle(settings.voice, settings.directions.request);
  });
  speaker.addEventListener("begin", () => preview.stop());
  preview.addEventListener("change", show);
  settings.addEventListener("voice", () => {
    preview.stop();
    show();
  });
  return preview;
}

// Whatever the server offers is read again whenever it comes back: it may be another one.
function connect(server, { choices, catalogue, view }, notice) {
  const connection = new Connection(server);
  // Ready means that every tab is in its place: none may appear under the hand that reaches for it.
  let loaded = false;
  const tell = () => {
    if (!loaded) return;
    const count = choices.voices.length;
    notice.show(true, count > 0
      ? t({ one: "Ready, {count} voice", other: "Ready, {count} voices" }, { count })
      : t("Ready"));
  };
  const load = async () => {
    try {
      // The lists may need no key even where speech does; this request shows whether it does.
      await server.confirmAccess();
      await Promise.all([choices.load(), catalogue.load()]);
      view.show();
      loaded = connection.ready;
      tell();
    } catch (error) {
      if (error.status === null) connection.lose(error.message);
      else notice.show(false, error.message);
    }
  };
  connection.addEventListener("change", () => {
    loaded = false;
    if (connection.ready) void load();
    else notice.show(false, connection.sentence);
  });
  choices.addEventListener("change", tell);
  connection.start();
}

// For tests and the browser's console.
function expose(speaker, { late, talk, voice, studio, listen }) {
  window.cantata = new Readings(speaker);
  Object.defineProperty(window.cantata, "streams", {
    get: () => late.lab.view?.streams ?? [],
  });
  Object.defineProperty(window.cantata, "drawings", { get: () => studio.drawings });
  Object.defineProperty(window.cantata, "transcription", { get: () => listen.transcription });
  Object.defineProperty(window.cantata, "reader", { get: () => late.read.view?.narrator });
  Object.defineProperty(window.cantata, "chat", { get: () => late.chat.view });
  window.cantata.talk = new TalkReadings(talk, voice);
}

start(document.querySelector(".cantata"));
