/** Merkle trees given by their edge, and consistency proofs between two of them (RFC 9162). */

import { Tree, hex, nodeHash, unhex } from "../verify.js";

/** The tree of `size` leaves with this edge: the roots of its full subtrees, the largest first. */
export const treeFromEdge = (size, edge) => Object.assign(new Tree(), { size, edge: [...edge] });

/** How many full subtrees, and so hashes in the edge, a tree of `size` leaves has. */
export const edgeLength = (size) => size.toString(2).replaceAll("0", "").length;

/**
 * Whether a consistency proof shows that the tree `after` extends the tree `before`: RFC 9162,
 * section 2.1.4.2. Every tree extends the empty one.
 *
 * @param {{ size: number, root: string }} before root in hex
 * @param {{ size: number, root: string }} after
 * @param {Uint8Array[]} proof
 */
export function isConsistent(before, after, proof) {
  if (before.size > after.size) return false;
  if (before.size === after.size) return proof.length === 0 && before.root === after.root;
  if (before.size === 0) return proof.length === 0;
  const path = edgeLength(before.size) === 1 ? [unhex(before.root), ...proof] : proof;
  if (path.length === 0) return false;
  const parent = (index) => Math.floor(index / 2);
  let [node, last] = [before.size - 1, after.size - 1];
  for (; node % 2 === 1; node = parent(node)) last = parent(last);
  let [oldRoot, newRoot] = [path[0], path[0]];
  for (const sibling of path.slice(1)) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      oldRoot = nodeHash(sibling, oldRoot);
      newRoot = nodeHash(sibling, newRoot);
      for (; node % 2 === 0 && node > 0; node = parent(node)) last = parent(last);
    } else {
      newRoot = nodeHash(newRoot, sibling);
    }
    [node, last] = [parent(node), parent(last)];
  }
  return last === 0 && hex(oldRoot) === before.root && hex(newRoot) === after.root;
}
