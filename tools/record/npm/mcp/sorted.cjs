// Loaded before the file server (node --require): directories are listed in the order of their names.
// The server hands on the order of the file system, which differs from machine to machine.
const promises = require("node:fs/promises");
const readdir = promises.readdir;
const key = (entry) => (typeof entry === "string" ? entry : entry.name);
promises.readdir = async (...call) =>
  (await readdir(...call)).sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
