// Lets modules of the pages fetch files of the folder in node, as they fetch the texts from a server.

import { readFile } from "node:fs/promises";

globalThis.fetch = async (url) => new Response(await readFile(new URL(url)));
