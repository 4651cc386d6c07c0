// Loaded before a client (`node --import`): none may contact any other host.

import { Socket } from "node:net";

const LOCAL = new Set(["127.0.0.1", "::1", "localhost"]);
const { connect } = Socket.prototype;

Socket.prototype.connect = function (...given) {
  const [options] = given.flat();
  const host = options?.host ?? "localhost";
  if (options?.path === undefined && !LOCAL.has(host)) {
    throw new Error(`tests reach this machine alone, not ${host}`);
  }
  return connect.apply(this, given);
};
