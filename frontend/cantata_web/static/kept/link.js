// Links that fill the page: ?text=&voice=&speed=&model=&seed=&instructions=

const NAMES = ["text", "model", "voice", "speed", "seed", "instructions"];

/** What the page's address asks for, as strings under the API's names; {} if nothing. An empty one asks nothing. */
export function askedBy(url) {
  const asked = {};
  for (const name of NAMES) {
    const value = url.searchParams.get(name);
    if (value) asked[name] = value;
  }
  return asked;
}

/** The address without that, or without some of it. */
export function withoutAsked(url, names = NAMES) {
  const plain = new URL(url);
  for (const name of names) plain.searchParams.delete(name);
  return plain;
}

/** The page's address with these settings; unset ones are left out, and so is the language. */
export function linkTo(url, settings) {
  const link = withoutAsked(url, [...NAMES, "lang"]);
  link.hash = "";
  for (const name of NAMES) {
    if (settings[name] !== undefined) link.searchParams.set(name, String(settings[name]));
  }
  return link;
}
