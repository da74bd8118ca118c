import { render } from "preact";
import { App } from "./app";
import { resume } from "./session";

const root = document.getElementById("app");
if (root) render(<App />, root);
void resume();
