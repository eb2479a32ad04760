/**
 * What scripts are made of, by the parser that node itself has: a JSON list of scripts on standard
 * input, and for each its tokens, [kind, value, line], and how many comments it has, or why it is
 * no script.
 */

const { readFileSync } = require("node:fs");
const { parse } = require("internal/deps/acorn/acorn/dist/acorn");

function read(script) {
  const [tokens, comments] = [[], []];
  const how = { ecmaVersion: "latest", sourceType: "module", locations: true };
  try {
    parse(script, { ...how, onToken: tokens, onComment: comments });
  } catch (error) {
    return { error: error.message };
  }
  const told = tokens.map(({ type, value, loc }) => [
    type.label, value?.pattern ?? String(value), loc.start.line,
  ]);
  return { tokens: told, comments: comments.length };
}

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(read)));
