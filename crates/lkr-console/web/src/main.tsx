import { render } from "preact";
import { App } from "./app";
import { resume } from "./session";

const root = document.getElementById("app");

/** Takes the place of the frame that the page shows while its scripts are loaded. */
function start(): void {
  root?.replaceChildren();
  if (root) render(<App />, root);
}

void resume().finally(start);
