// Modules of the console for tests without a browser.
import { build } from "esbuild";
import { OPTIONS } from "../../bundle.mjs";

/** The exports of a module of `src`, with what it imports in a bundle of its own, so that each test begins anew. */
export async function load(path) {
  const { outputFiles } = await build({
    ...OPTIONS,
    entryPoints: [`src/${path}`],
    splitting: false,
    logLevel: "warning",
  });
  const [{ text }] = outputFiles;
  return import(`data:text/javascript,${encodeURIComponent(`${text}\n// ${++bundles}`)}`);
}

let bundles = 0;

/** What modules use of a browser as they are loaded. */
export function standIn(globals = {}) {
  const target = () => ({ addEventListener() {}, removeEventListener() {} });
  const stored = new Map();
  Object.assign(globalThis, {
    document: {
      ...target(),
      cookie: "",
      visibilityState: "visible",
      documentElement: { dataset: {} },
      querySelector: () => null,
    },
    window: { ...target(), setInterval: () => 1, setTimeout: globalThis.setTimeout },
    sessionStorage: {
      getItem: (key) => stored.get(key) ?? null,
      setItem: (key, value) => stored.set(key, value),
      removeItem: (key) => stored.delete(key),
      clear: () => stored.clear(),
    },
    BroadcastChannel: class {
      addEventListener() {}
      postMessage() {}
    },
    EventSource: class {
      addEventListener() {}
      close() {}
    },
    ...globals,
  });
  if (globalThis.navigator === undefined) globalThis.navigator = { language: "en" };
}
