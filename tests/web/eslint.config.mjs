// ESLint rules for the JavaScript of dealer/web and of the tests. The packages are in build/.

import { createRequire } from "node:module";

const require = createRequire(new URL("../../build/", import.meta.url));
const js = require("@eslint/js");
const globals = require("globals");

export default [
  { ignores: ["dealer/web/lean-qr/**"] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, globals: { ...globals.browser, process: "readonly" } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "no-unused-vars": ["error", { argsIgnorePattern: "^_", varsIgnorePattern: "^_" }],
      "no-control-regex": "off", // canonical text is defined by its control characters
      "no-var": "error",
      "prefer-const": ["error", { destructuring: "all" }],
      eqeqeq: ["error", "always", { null: "ignore" }],
      curly: ["error", "multi-line"],
      "no-duplicate-imports": "off", // client.js exports one name twice, under its old name
      "no-implicit-globals": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-shadow": ["error", { allow: ["name", "at", "table", "given"] }],
      "no-use-before-define": ["error", { functions: false, classes: false, variables: false }],
      "max-len": ["error", { code: 102 }],
      "max-lines-per-function": ["error", { max: 80, skipBlankLines: true, skipComments: true }],
    },
  },
  {
    files: ["tests/**", "dealer/docs/examples/**"],
    languageOptions: { globals: globals.node },
    rules: { "no-new-func": "off" },
  },
];
