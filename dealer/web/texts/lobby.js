/** The English texts of the page at which tables are opened. */

export const lobby = {
  title: "dealer: open a table",
  headline: "A card table that proves its shuffle",
  promise:
    "Open a table, send the link to your friends, and play anything you like. Each player’s " +
    "browser mixes its own chance into every shuffle and checks every card.",
  openTitle: "Play",
  yourName: "Your name",
  guest: "Guest",
  open: "Open a table",
  opening: "The table is being laid…",
  choose: "Choose deck, seats and rules",
  tableName: "Name of the table",
  defaultTable: (player) => `${player}’s table`,
  nameless: (id) => `Table ${id.slice(0, 6)}`,
  seats: "Seats",
  shoe: "Decks in the shoe",
  deck: "Deck",
  decks: [
    ["52", "52 cards"], ["54", "52 cards and two jokers"], ["36", "36 cards, six to ace"],
    ["32", "32 cards, seven to ace"], ["24", "24 cards, nine to ace"],
  ],
  preset: "Rules",
  presets: [["free", "Free"], ["dealer", "The host deals"], ["shared", "Everybody deals"]],
  presetMeans: {
    free: "Players draw and move cards; the host shuffles and deals.",
    dealer: "Only the host touches the deck; players play from their hands.",
    shared: "Everybody may shuffle and deal.",
  },
  entropy: "Chance",
  entropies: [["players", "From all players and the house"], ["house", "From the house alone"]],
  entropyMeans: {
    players: "Each player’s browser adds random bytes: nobody can choose the shuffle.",
    house: "Faster. It proves only that the cards were fixed before the deal.",
  },
  invited: "Only who has the link may sit down",
  watched: "Others may look on",
  collects: "The host may collect the cards of players’ hands",
  tables: "Open tables",
  looking: "Looking for tables…",
  noTables: "No table is open yet.",
  seated: (taken) => (taken === 1 ? "1 player" : `${taken} players`),
  rounds: (rounds) => (rounds === 1 ? "1 round so far" : `${rounds} rounds so far`),
  auditBefore: "A game is over? ",
  audit: "Watch it being checked, swap by swap",
};
