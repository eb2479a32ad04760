/**
 * The JavaScript client of dealer: plays at a table of any server and verifies all that it is sent.
 * It runs in browsers and on node. The public names are described in client.d.ts, and their use in
 * CLIENT.md, which also says how to copy the client: this file, the modules in `client/`, and
 * verify.js, which has the formulas and the rules.
 */

export { playerKey } from "./client/cosigner.js";
export {
  ConfigurationError, DealerError, HouseCheated, HouseUnreachable, Refused, SessionEnded,
} from "./client/errors.js";
export { connect } from "./client/house.js";
export { browserStore, fileStore, memoryStore } from "./client/stores.js";
export { VERSION } from "./verify.js";
