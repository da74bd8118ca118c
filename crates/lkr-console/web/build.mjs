// Bundles the console into ../dist: the files that the executable contains, each compressed with gzip.
// `node build.mjs --check` builds and compares with what is there instead of writing it.
import { readFile, readdir, rm, mkdir, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { OPTIONS, root } from "./bundle.mjs";

const DIST = new URL("../dist/", import.meta.url);

/** The path under which the server answers the files. */
const PUBLIC_PATH = "/console";

const files = await bundle();
if (process.argv.includes("--check")) await compare(files);
else await write(files);
report(files);

/** The files of the console by name. */
async function bundle() {
  const result = await build({
    ...OPTIONS,
    minify: true,
    metafile: true,
    legalComments: "none",
    entryNames: "[name]-[hash]",
    chunkNames: "[name]-[hash]",
    logLevel: "warning",
  });
  const files = new Map();
  for (const file of result.outputFiles) files.set(basename(file.path), Buffer.from(file.contents));
  const named = (start, end) => [...files.keys()].find((name) => name.startsWith(start) && name.endsWith(end));
  const page = await readFile(new URL("src/index.html", root), "utf8");
  const preloads = importsOf(result.metafile, named("app-", ".js"));
  const html = page
    .replace("{preloads}", preloads.map((name) => `<link rel="modulepreload" href="${PUBLIC_PATH}/${name}">`).join("\n"))
    .replace("{script}", `${PUBLIC_PATH}/${named("app-", ".js")}`)
    .replace("{style}", `${PUBLIC_PATH}/${named("style-", ".css")}`);
  files.set("index.html", Buffer.from(html));
  files.set("icon.svg", await readFile(new URL("src/icon.svg", root)));
  files.set("licenses.txt", await licences(result.metafile));
  return files;
}

/** The files that a script imports as it is loaded: a browser that knows them asks for all at once. */
function importsOf({ outputs }, script) {
  const output = Object.entries(outputs).find(([path]) => basename(path) === script);
  const imports = output?.[1].imports.filter(({ kind }) => kind === "import-statement") ?? [];
  return imports.map(({ path }) => basename(path)).sort();
}

/** The licences of the packages whose code is in the bundle. */
async function licences(metafile) {
  const packages = new Set();
  for (const path of Object.keys(metafile.inputs)) {
    const [, name] = path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//) ?? [];
    if (name) packages.add(name);
  }
  const parts = [];
  for (const name of [...packages].sort()) {
    const folder = new URL(`node_modules/${name}/`, root);
    const { version, license } = JSON.parse(await readFile(new URL("package.json", folder), "utf8"));
    const file = (await readdir(folder)).find((file) => /^licen[cs]e/i.test(file));
    const text = file ? await readFile(new URL(file, folder), "utf8") : "";
    parts.push(`${name} ${version} (${license})\n\n${text.trim()}\n`);
  }
  return Buffer.from(parts.join("\n\n"));
}

async function write(files) {
  await rm(DIST, { recursive: true, force: true });
  await mkdir(DIST, { recursive: true });
  for (const [name, bytes] of files) await writeFile(new URL(`${name}.gz`, DIST), compress(bytes));
}

/** Gzip without a time and a system in its header, so that equal files have equal bytes. */
function compress(bytes) {
  const compressed = gzipSync(bytes, { level: 9 });
  compressed.fill(0, 4, 8);
  compressed[9] = 255;
  return compressed;
}

/** Compares the files that compression hides: zlib's output differs between versions of Node. */
async function compare(files) {
  const stored = new Map();
  for (const name of await readdir(DIST)) {
    stored.set(name.replace(/\.gz$/, ""), gunzipSync(await readFile(new URL(name, DIST))));
  }
  const names = new Set([...files.keys(), ...stored.keys()]);
  const different = [...names].filter((name) => !files.get(name)?.equals(stored.get(name) ?? Buffer.alloc(0)));
  if (different.length > 0) {
    console.error(`the console in dist/ was not built from these sources: ${different.join(", ")}; run: npm run build`);
    process.exit(1);
  }
}

function report(files) {
  for (const [name, bytes] of files) {
    console.log(`${name.padEnd(32)} ${String(bytes.length).padStart(8)} ${String(compress(bytes).length).padStart(8)} gz`);
  }
}
