// How the console is bundled: for its built files, and for development.

export const root = new URL(".", import.meta.url);

export const OPTIONS = {
  absWorkingDir: root.pathname,
  entryPoints: { app: "src/main.tsx", style: "src/styles/index.css" },
  outdir: "out",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  charset: "utf8",
  // The variant for browsers decodes references by assigning mark-up, which the policy of the page forbids.
  alias: { "decode-named-character-reference": "./node_modules/decode-named-character-reference/index.js" },
  write: false,
};
