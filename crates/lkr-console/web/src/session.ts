// Who is signed in.
import { computed, effect, signal } from "@preact/signals";
import { ApiError, Code, get, listenToErrors, post, setCsrfToken } from "./api/client";
import type { User } from "./api/types";
import { options } from "./options";

export type Session =
  | { state: "loading" }
  | { state: "anonymous" }
  | { state: "ended" }
  | { state: "user"; user: User };

export const session = signal<Session>({ state: "loading" });

export const user = computed(() => (session.value.state === "user" ? session.value.user : null));
export const isAdmin = computed(() => user.value?.role === "admin" && !user.value.must_change_password);

interface Login {
  csrf_token?: string | null;
  user: User;
}

/** Takes up the session of the cookie, if there is one. */
export async function resume(): Promise<void> {
  listenToErrors(noticeEnd);
  if (!options.session) {
    session.value = { state: "anonymous" };
    return;
  }
  try {
    const me = (await get("/api/v1/auth/me")) as User & { csrf_token?: string };
    setCsrfToken(me.csrf_token ?? null);
    session.value = { state: "user", user: me };
  } catch (error) {
    if (!(error instanceof ApiError) || error.isUnreachable) throw error;
    session.value = { state: "anonymous" };
  }
}

export async function login(username: string, password: string): Promise<void> {
  enter(await post("/api/v1/auth/login", { body: { username, password, cookie: true } }));
}

export async function register(username: string, password: string): Promise<void> {
  enter(await post("/api/v1/auth/register", { body: { username, password, cookie: true } }));
}

export async function changePassword(current: string, next: string): Promise<void> {
  enter(await post("/api/v1/auth/password", { body: { current_password: current, new_password: next } }));
}

/** Ends the session. The page is loaded anew, here and in the browser's other tabs, so that nothing of it stays. */
export async function logout(): Promise<void> {
  await post("/api/v1/auth/logout");
  tabs.postMessage(ENDED);
  leave();
}

/** Loads the page anew, without what it kept for the account. */
function leave(): void {
  sessionStorage.clear();
  location.assign("/");
}

const ENDED = "session ended";

/** The console's other tabs in this browser. */
const tabs = new BroadcastChannel("lkr");
tabs.addEventListener("message", ({ data }) => {
  if (data === ENDED && session.peek().state === "user") leave();
});

/** Notices a session that ended where no request told so: requests for streams tell no reason. */
export async function check(): Promise<void> {
  if (session.peek().state === "user") await get("/api/v1/auth/me").catch(() => {});
}

/** The account that was signed in last since the page was loaded. */
let lastUser: string | undefined;

effect(() => {
  lastUser = user.value?.username ?? lastUser;
});

function enter(login: Login): void {
  // Another account finds nothing of what the page holds for the last one, such as its uploads.
  if (lastUser !== undefined && lastUser !== login.user.username) {
    location.reload();
    return;
  }
  setCsrfToken(login.csrf_token ?? null);
  session.value = { state: "user", user: login.user };
}

/** A session that ends while the page is open is told, and the page asks for a login. */
function noticeEnd(error: ApiError): void {
  if (error.code === Code.unauthenticated && session.peek().state === "user") {
    setCsrfToken(null);
    session.value = { state: "ended" };
  }
  if (error.code === Code.passwordChangeRequired) {
    const current = session.peek();
    if (current.state === "user" && !current.user.must_change_password) {
      session.value = { state: "user", user: { ...current.user, must_change_password: true } };
    }
  }
}
