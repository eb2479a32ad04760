/**
 * QR codes (ISO/IEC 18004) of texts: byte mode, error correction level M, versions 1 to 40. They are
 * made here and not by the server, because a link may hold the token of a seat.
 */

/** Codewords of error correction per block of level M, by version. */
const CHECK_CODEWORDS = [
  0, 10, 16, 26, 18, 24, 16, 18, 22, 22, 26, 30, 22, 22, 24, 24, 28, 28, 26, 26, 26,
  26, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28, 28,
];
/** Blocks of level M, by version. */
const BLOCKS = [
  0, 1, 1, 1, 2, 2, 4, 4, 4, 5, 5, 5, 8, 9, 9, 10, 10, 11, 13, 14, 16,
  17, 17, 18, 20, 21, 23, 25, 26, 28, 29, 31, 33, 35, 37, 38, 40, 43, 45, 47, 49,
];
const LEVEL_M = 0b00;
const BYTE_MODE = 0b0100;
const MAX_VERSION = 40;
const PADDING = [0xec, 0x11];
const MASKS = [
  (x, y) => (x + y) % 2 === 0,
  (x, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/**
 * The modules of the code, by row and column; true is dark. The quiet zone is not included.
 *
 * @param {string} text
 * @returns {boolean[][]}
 * @throws {RangeError} if the text has more than 2,331 bytes
 */
export function qrModules(text) {
  const bytes = new TextEncoder().encode(text);
  const version = versionFor(bytes.length);
  const codewords = interleaved(dataCodewords(bytes, version), version);
  const symbols = MASKS.map((_, mask) => symbol(version, codewords, mask));
  const penalties = symbols.map(penalty);
  return symbols[penalties.indexOf(Math.min(...penalties))];
}

const sizeOf = (version) => 17 + 4 * version;
const lengthBits = (version) => (version < 10 ? 8 : 16);
const dataLength = (version) => totalCodewords(version) - CHECK_CODEWORDS[version] * BLOCKS[version];

function versionFor(length) {
  for (let version = 1; version <= MAX_VERSION; version++) {
    if (4 + lengthBits(version) + 8 * length <= 8 * dataLength(version)) return version;
  }
  throw new RangeError("This text is too long for a QR code.");
}

/** The centres of the alignment patterns, in both directions. */
function alignments(version) {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = version === 32 ? 26 : Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  const last = sizeOf(version) - 7;
  const others = Array.from({ length: count - 1 }, (_, index) => last - index * step);
  return [6, ...others.reverse()];
}

/** Codewords that fit into the modules that no pattern takes. */
function totalCodewords(version) {
  const size = sizeOf(version);
  const count = alignments(version).length;
  const aligned = version === 1 ? 0 : 25 * (count * count - 3) - 10 * (count - 2);
  const patterns = 3 * 64 + 2 * (size - 16) + 31 + aligned + (version < 7 ? 0 : 36);
  return Math.floor((size * size - patterns) / 8);
}

// ————— Codewords —————

function dataCodewords(bytes, version) {
  const bits = [];
  const add = (value, length) => {
    for (let bit = length - 1; bit >= 0; bit--) bits.push((value >>> bit) & 1);
  };
  add(BYTE_MODE, 4);
  add(bytes.length, lengthBits(version));
  for (const byte of bytes) add(byte, 8);
  const capacity = 8 * dataLength(version);
  add(0, Math.min(4, capacity - bits.length));
  add(0, (8 - (bits.length % 8)) % 8);
  for (let index = 0; bits.length < capacity; index++) add(PADDING[index % 2], 8);
  return Array.from({ length: capacity / 8 }, (_, index) =>
    bits.slice(8 * index, 8 * index + 8).reduce((value, bit) => 2 * value + bit, 0));
}

/** The blocks' data, codeword by codeword, and then the codewords of their error correction. */
function interleaved(data, version) {
  const [blocks, checks] = [BLOCKS[version], CHECK_CODEWORDS[version]];
  const generator = generatorOf(checks);
  const short = Math.floor(data.length / blocks);
  const firstLong = blocks - (data.length % blocks);
  const parts = [];
  for (let block = 0, start = 0; block < blocks; block++) {
    const end = start + short + (block < firstLong ? 0 : 1);
    parts.push(data.slice(start, end));
    start = end;
  }
  const corrections = parts.map((part) => remainder(part, generator));
  const result = [];
  for (let index = 0; index <= short; index++) {
    for (const part of parts) if (index < part.length) result.push(part[index]);
  }
  for (let index = 0; index < checks; index++) {
    for (const correction of corrections) result.push(correction[index]);
  }
  return result;
}

/** The product in GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1. */
function product(a, b) {
  let result = 0;
  for (let bit = 7; bit >= 0; bit--) {
    result = (result << 1) ^ ((result >>> 7) * 0x11d);
    result ^= ((b >>> bit) & 1) * a;
  }
  return result;
}

/** The Reed-Solomon generator polynomial, highest power first, without its leading 1. */
function generatorOf(degree) {
  const result = [...new Array(degree - 1).fill(0), 1];
  for (let power = 0, root = 1; power < degree; power++, root = product(root, 2)) {
    for (let index = 0; index < degree; index++) {
      result[index] = product(result[index], root) ^ (result[index + 1] ?? 0);
    }
  }
  return result;
}

function remainder(data, generator) {
  const result = generator.map(() => 0);
  for (const codeword of data) {
    const factor = codeword ^ result.shift();
    result.push(0);
    generator.forEach((coefficient, index) => (result[index] ^= product(coefficient, factor)));
  }
  return result;
}

// ————— Modules —————

function symbol(version, codewords, mask) {
  const size = sizeOf(version);
  const rows = Array.from({ length: size }, () => new Array(size).fill(null));
  const set = (x, y, dark) => {
    if (x >= 0 && y >= 0 && x < size && y < size) rows[y][x] = dark;
  };
  drawPatterns(version, set);
  drawFormat(size, mask, set);
  if (version >= 7) drawVersion(version, set);
  drawCodewords(rows, codewords, MASKS[mask]);
  return rows;
}

function drawPatterns(version, set) {
  const size = sizeOf(version);
  for (let at = 0; at < size; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  const square = (x, y, radius, isDark) => {
    for (let dy = -radius; dy <= radius; dy++) {
      for (let dx = -radius; dx <= radius; dx++) {
        set(x + dx, y + dy, isDark(Math.max(Math.abs(dx), Math.abs(dy))));
      }
    }
  };
  const corners = [[3, 3], [size - 4, 3], [3, size - 4]];
  for (const [x, y] of corners) square(x, y, 4, (distance) => distance !== 2 && distance !== 4);
  const centres = alignments(version);
  const last = centres.at(-1);
  for (const x of centres) {
    for (const y of centres) {
      const corner = (x === 6 && (y === 6 || y === last)) || (x === last && y === 6);
      if (!corner) square(x, y, 2, (distance) => distance !== 1);
    }
  }
}

/** A number with the remainder of its BCH code. */
function withCheck(value, generator, bits) {
  let rest = value;
  for (let bit = 0; bit < bits; bit++) rest = (rest << 1) ^ ((rest >>> (bits - 1)) * generator);
  return (value << bits) | rest;
}

function drawFormat(size, mask, set) {
  const bits = withCheck((LEVEL_M << 3) | mask, 0x537, 10) ^ 0x5412;
  const bit = (index) => ((bits >>> index) & 1) === 1;
  for (let index = 0; index < 6; index++) set(8, index, bit(index));
  set(8, 7, bit(6));
  set(8, 8, bit(7));
  set(7, 8, bit(8));
  for (let index = 9; index < 15; index++) set(14 - index, 8, bit(index));
  for (let index = 0; index < 8; index++) set(size - 1 - index, 8, bit(index));
  for (let index = 8; index < 15; index++) set(8, size - 15 + index, bit(index));
  set(8, size - 8, true);
}

function drawVersion(version, set) {
  const bits = withCheck(version, 0x1f25, 12);
  for (let index = 0; index < 18; index++) {
    const dark = ((bits >>> index) & 1) === 1;
    const [far, near] = [sizeOf(version) - 11 + (index % 3), Math.floor(index / 3)];
    set(far, near, dark);
    set(near, far, dark);
  }
}

/** Fill the free modules with the bits, in columns of two from the right, up and down in turn. */
function drawCodewords(rows, codewords, isMasked) {
  const size = rows.length;
  let index = 0;
  for (let right = size - 1; right >= 1; right -= 2) {
    if (right === 6) right = 5;
    for (let step = 0; step < size; step++) {
      const y = ((right + 1) & 2) === 0 ? size - 1 - step : step;
      for (const x of [right, right - 1]) {
        if (rows[y][x] !== null) continue;
        const bit = ((codewords[index >>> 3] ?? 0) >>> (7 - (index & 7))) & 1;
        rows[y][x] = (bit === 1) !== isMasked(x, y);
        index += 1;
      }
    }
  }
}

/** How hard a symbol is to read: runs, blocks, patterns like a corner's, and uneven darkness. */
function penalty(rows) {
  const size = rows.length;
  const columns = rows.map((_, x) => rows.map((row) => row[x]));
  let total = 0;
  for (const line of [...rows, ...columns]) {
    const text = line.map(Number).join("");
    for (const [run] of text.matchAll(/0{5,}|1{5,}/g)) total += run.length - 2;
    total += 40 * [...text.matchAll(/(?=10111010000|00001011101)/g)].length;
  }
  for (let y = 1; y < size; y++) {
    for (let x = 1; x < size; x++) {
      const dark = rows[y][x];
      const same = rows[y - 1][x] === dark && rows[y][x - 1] === dark && rows[y - 1][x - 1] === dark;
      if (same) total += 3;
    }
  }
  const dark = rows.flat().filter(Boolean).length / (size * size);
  return total + 10 * Math.floor(Math.abs(dark - 0.5) * 20);
}
