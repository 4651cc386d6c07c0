// A WebSocket whose server is the test.
export class FakeSocket extends EventTarget {
  static OPEN = 1;
  static made = [];
  readyState = 0;
  sent = [];

  constructor(path) {
    super();
    this.path = path;
    FakeSocket.made.push(this);
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.readyState = 3;
    this.dispatchEvent(new Event("close"));
  }

  // As when the network has gone.
  lose() {
    this.readyState = 3;
    this.dispatchEvent(Object.assign(new Event("close"), { code: 1006 }));
  }

  connect() {
    this.readyState = FakeSocket.OPEN;
    this.dispatchEvent(new Event("open"));
  }

  /** An event by its fields. */
  deliver(type, fields = {}) {
    this.receive({ type, ...fields });
  }

  /** Sound, or an event. */
  receive(data) {
    const wire = data instanceof ArrayBuffer ? data : JSON.stringify(data);
    this.dispatchEvent(new MessageEvent("message", { data: wire }));
  }

  get types() {
    return this.sent.map(({ type }) => type);
  }
}
