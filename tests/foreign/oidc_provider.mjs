/**
 * The npm package oidc-provider as an issuer on a free port of this machine. Its users sign in at the
 * client `club` without a password, as the account of their `login_hint`; programs are clients of
 * their own, `ada` and `bob`. Prints its URL. Each line on standard input is a command, answered with a line:
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
let provider = null;
let handle = null;
const server = createServer((request, response) =>
  (request.url.startsWith("/interaction/") ? signIn : handle)(request, response));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const issuer = `http://127.0.0.1:${server.address().port}`;

/** Answers every question to the user at once: the account is the hint, and all is granted. */
async function signIn(request, response) {
  const { prompt, params, session, grantId } = await provider.interactionDetails(request, response);
  if (prompt.name === "login") {
    const login = { accountId: params.login_hint };
    await provider.interactionFinished(request, response, { login });
    return;
  }
  const { accountId } = session;
  const grant = (grantId && await provider.Grant.find(grantId)) ||
    new provider.Grant({ accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const consent = { grantId: await grant.save() };
  await provider.interactionFinished(request, response, { consent });
}

async function rotate() {
  const { privateKey } = await generateKeyPair(ALG, { extractable: true });
  keys += 1;
  const jwk = { ...(await exportJWK(privateKey)), kid: `key ${keys}`, alg: ALG, use: "sig" };
  const program = (id) => ({
    client_id: id,
    client_secret: `secret-of-${id}`,
    grant_types: ["client_credentials"],
    id_token_signed_response_alg: ALG,
    redirect_uris: [],
    response_types: [],
  });
  const club = {
    client_id: "club",
    token_endpoint_auth_method: "none",
    id_token_signed_response_alg: ALG,
    redirect_uris: [`${issuer}/signed-in`],
  };
  const forResource = (_context, audience) => ({
    audience,
    scope: "play",
    accessTokenFormat: "jwt",
    accessTokenTTL: 600,
    jwt: { sign: { alg: ALG } },
  });
  provider = new Provider(issuer, {
    jwks: { keys: [jwk] },
    clients: [club, program("ada"), program("bob")],
    claims: { profile: ["name", "preferred_username"] },
    conformIdTokenClaims: false, // the ID token has the claims of the scope
    cookies: { keys: ["for tests"] },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: () => ({ sub: accountId, name: `${accountId} Ω`, preferred_username: accountId }),
    }),
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    extraTokenClaims: (_context, token) => ({ name: `${token.clientId} of the club` }),
    features: {
      clientCredentials: { enabled: true },
      devInteractions: { enabled: false },
      resourceIndicators: { enabled: true, getResourceServerInfo: forResource },
    },
  });
  handle = provider.callback();
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
