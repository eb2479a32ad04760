/**
 * Receives webhooks with npm's standardwebhooks and cloudevents, and with node's own crypto, by the
 * examples `onRequest` and `verify` of the document, which precede this. Standard input is an array
 * of { verifier, headers, body }; standard output has of each what its receiver makes of it.
 */

import { HTTP } from "cloudevents";
import { text } from "node:stream/consumers";

/** The value of `read`, or the error's class. */
function outcome(read) {
  try {
    return { value: read() };
  } catch (error) {
    return { error: error.name };
  }
}

function cloudEvent(headers, body) {
  const event = HTTP.toEvent({ headers, body });
  event.validate();
  return event.toJSON();
}

const received = JSON.parse(await text(process.stdin)).map(({ verifier, headers, body }) => {
  const shared = verifier.startsWith("whsec_");
  const check = () => (shared ? onRequest : verify)(verifier, body, headers);
  return { signed: outcome(check), event: outcome(() => cloudEvent(headers, body)) };
});
console.log(JSON.stringify(received));
