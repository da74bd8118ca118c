// Serves the console from its sources, and sends everything else to a running server:
// `LKR_URL=http://127.0.0.1:8080 npm run dev`.
import { createServer, request } from "node:http";
import { readFile } from "node:fs/promises";
import { context } from "esbuild";
import { OPTIONS, root } from "./bundle.mjs";

const server = new URL(process.env.LKR_URL ?? "http://127.0.0.1:8080");
const port = Number(process.env.PORT ?? 5173);

const esbuild = await context({ ...OPTIONS, sourcemap: "inline" });

createServer(async (incoming, outgoing) => {
  const path = new URL(incoming.url, server).pathname;
  if (path === "/console/icon.svg") return answer(outgoing, "image/svg+xml", await readFile(new URL("src/icon.svg", root)));
  if (path.startsWith("/console/")) return bundle(outgoing, path.slice("/console/".length));
  if (/^\/(api|docs|mcp|metrics|healthz|readyz)(\/|$)/.test(path)) return forward(incoming, outgoing);
  const page = await readFile(new URL("src/index.html", root), "utf8");
  const hasSession = /lkr_session=/.test(incoming.headers.cookie ?? "");
  const html = page
    .replace("{theme}", "auto")
    .replace("{options}", JSON.stringify({ session: hasSession }).replaceAll('"', "&quot;"))
    .replace("{preloads}\n", "")
    .replace("{script}", "/console/app.js")
    .replace("{style}", "/console/style.css");
  answer(outgoing, "text/html", html);
}).listen(port, "127.0.0.1", () => console.log(`http://127.0.0.1:${port}, API of ${server.href}`));

async function bundle(outgoing, name) {
  try {
    const { outputFiles } = await esbuild.rebuild();
    const file = outputFiles.find(({ path }) => path.endsWith(`/out/${name}`));
    const type = name.endsWith(".css") ? "text/css" : "text/javascript";
    if (file) return answer(outgoing, type, Buffer.from(file.contents));
  } catch (error) {
    console.error(error.message);
  }
  outgoing.writeHead(404).end();
}

function answer(outgoing, type, body) {
  outgoing.writeHead(200, { "Content-Type": `${type}; charset=utf-8`, "Cache-Control": "no-store" }).end(body);
}

function forward(incoming, outgoing) {
  const { method, url, headers } = incoming;
  const sent = request({ host: server.hostname, port: server.port, method, path: url, headers }, (answered) => {
    outgoing.writeHead(answered.statusCode, answered.headers);
    answered.pipe(outgoing);
  });
  sent.on("error", () => outgoing.writeHead(502).end());
  incoming.pipe(sent);
}
