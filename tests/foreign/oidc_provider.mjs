/**
 * The npm package oidc-provider as an issuer on a free port of this machine; its clients are the
 * users. Prints its URL. Each line on standard input is a command, answered with a line:
 * `rotate` makes another key its only one; `clock SECONDS` sets its clock that far from the real one.
 */

import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { exportJWK, generateKeyPair } from "jose";
import { Provider } from "oidc-provider";

console.info = console.error; // the provider's notices; standard output has our answers
const ALG = "ES256";
const now = Date.now;
let keys = 0;
let handle = null;
const server = createServer((request, response) => handle(request, response));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

async function rotate() {
  const { privateKey } = await generateKeyPair(ALG, { extractable: true });
  keys += 1;
  const jwk = { ...(await exportJWK(privateKey)), kid: `key ${keys}`, alg: ALG, use: "sig" };
  const user = (id) => ({
    client_id: id,
    client_secret: `secret-of-${id}`,
    grant_types: ["client_credentials"],
    id_token_signed_response_alg: ALG,
    redirect_uris: [],
    response_types: [],
  });
  const forResource = (_context, audience) => ({
    audience,
    scope: "play",
    accessTokenFormat: "jwt",
    accessTokenTTL: 600,
    jwt: { sign: { alg: ALG } },
  });
  handle = new Provider(issuer, {
    jwks: { keys: [jwk] },
    clients: [user("ada"), user("bob")],
    extraTokenClaims: (_context, token) => ({ name: `${token.clientId} of the club` }),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: { enabled: true, getResourceServerInfo: forResource },
    },
  }).callback();
}

await rotate();
console.log(issuer);
for await (const line of createInterface({ input: process.stdin })) {
  const [command, seconds] = line.split(" ");
  if (command === "rotate") await rotate();
  else Date.now = () => now() + 1000 * Number(seconds);
  console.log("done");
}
process.exit(0);
