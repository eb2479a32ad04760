/** The English texts of the lobby. */

export const lobby = {
  title: (brand) => `${brand ?? "dealer"}: open a table`,
  headline: "A card table that proves its shuffle",
  promise:
    "Open a table, send the link to your friends, and play any card game. Each player’s browser " +
    "adds random bytes to every shuffle and checks every card.",
  openTitle: "Play",
  yourName: "Your name",
  guest: "Guest",
  open: "Open a table",
  opening: "Opening the table…",
  choose: "Choose deck, seats and rules",
  tableName: "Name of the table",
  defaultTable: (player) => `${player}’s table`,
  nameless: (id) => `Table ${id.slice(0, 6)}`,
  seats: "Seats",
  shoe: "Number of decks",
  deck: "Deck",
  decks: [
    ["52", "52 cards"], ["54", "52 cards and two jokers"], ["36", "36 cards, six to ace"],
    ["32", "32 cards, seven to ace"], ["24", "24 cards, nine to ace"],
  ],
  preset: "Rules",
  presets: [["free", "Free"], ["dealer", "The host deals"], ["shared", "Everyone deals"]],
  presetMeans: {
    free: "Players draw and move cards; the host shuffles and deals.",
    dealer: "Only the host draws and deals; players play cards from their hands.",
    shared: "Every player may shuffle and deal.",
  },
  entropy: "Random bytes",
  entropies: [["players", "From the house and all players"], ["house", "From the house only"]],
  entropyMeans: {
    players: "Each player’s browser adds random bytes, so no single party can choose the shuffle.",
    house: "Faster, but it proves only that the cards were fixed before the deal.",
  },
  invited: "Only players with the invite link can sit down",
  watched: "Others may watch",
  collects: "The host may collect the cards of players’ hands",
  tables: "Open tables",
  looking: "Loading the list of tables…",
  noTables: "No tables are open.",
  seated: (taken) => (taken === 1 ? "1 player" : `${taken} players`),
  rounds: (rounds) => (rounds === 1 ? "1 round so far" : `${rounds} rounds so far`),
  auditBefore: "Finished a game? ",
  audit: "Replay and check it, swap by swap",

  game: "Game",
  anyGame: "Any game",
  anyGameMeans: "A table without a plan: piles, deals and rules are up to you.",
  gameMeans: ({ min, max, best }, cards) =>
    `${min === max ? min : `${min} to ${max}`} ${max === 1 ? "player" : "players"}` +
    `${min === max ? "" : `, best with ${best}`}; ${cards} cards.`,
  deckOfGame: (cards) => `The ${cards} cards of the game`,
  listed: "Show this table in the list",
  noPack: "This server does not have the chosen cards any more; load the page again.",
};
