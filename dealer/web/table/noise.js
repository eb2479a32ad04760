/** The sound of a card, made from noise; a page loads this with its first sound. */

const SECONDS = 0.07;
const MOST_AT_ONCE = 12; // of a deal
const APART = 0.045; // seconds

/** @type {{ context: AudioContext, noise: AudioBuffer } | null} */
let player = null;
let nextAt = 0;

/** A card slides over the table; several cards follow one another. */
export function soundOfCard() {
  player ??= prepare();
  const { context, noise } = player;
  nextAt = Math.max(nextAt + APART, context.currentTime);
  if (nextAt > context.currentTime + MOST_AT_ONCE * APART) return;
  const source = new AudioBufferSourceNode(context, {
    buffer: noise, playbackRate: 0.85 + Math.random() * 0.3,
  });
  const filter = new BiquadFilterNode(context, { type: "bandpass", frequency: 2600, Q: 0.7 });
  source.connect(filter).connect(new GainNode(context, { gain: 0.25 })).connect(context.destination);
  source.start(nextAt);
}

function prepare() {
  const context = new AudioContext();
  const length = Math.round(context.sampleRate * SECONDS);
  const noise = context.createBuffer(1, length, context.sampleRate);
  const samples = noise.getChannelData(0);
  for (let index = 0; index < length; index++) {
    samples[index] = (Math.random() * 2 - 1) * (1 - index / length) ** 3;
  }
  return { context, noise };
}
