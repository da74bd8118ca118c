// Who is signed in.
import { computed, effect, signal } from "@preact/signals";
import { ApiError, Code, get, listenToErrors, post, sessionCount, setCsrfToken } from "./api/client";
import type { User } from "./api/types";
import { options } from "./options";
import { asApiError } from "./use_resource";

export type Session =
  | { state: "loading" }
  | { state: "anonymous" }
  /** The server could not be asked. */
  | { state: "unknown"; error: ApiError }
  /** The page stays as it was for the account, until somebody signs in. */
  | { state: "ended"; user: User }
  | { state: "user"; user: User };

export const session = signal<Session>({ state: "loading" });

/** Whether the person can do nothing before they have changed the password. */
const mustChangePassword = computed(() => session.value.state === "user" && session.value.user.must_change_password);

/** Whether the page stays hidden until the person has signed in again, or has changed a password that was given to them. */
export const isHidden = computed(() => session.value.state === "ended" || mustChangePassword.value);

/** Whose the page is. */
export const user = computed(() => ("user" in session.value ? session.value.user : null));
export const isAdmin = computed(() => user.value?.role === "admin");

interface Login {
  csrf_token?: string | null;
  user: User;
}

/** Takes up the session of the cookie, if there is one. */
export async function resume(): Promise<void> {
  listenToErrors(noticeRefusal);
  if (!options.session) {
    session.value = { state: "anonymous" };
    return;
  }
  try {
    await takeUp();
  } catch (error) {
    // Only the server can tell that the cookie's session has ended: without its word nobody is taken for anonymous.
    if (!isUnauthenticated(error)) {
      session.value = { state: "unknown", error: asApiError(error) };
      return;
    }
    // The page itself removes the cookie of a session that has ended. It came without it if a link of another site led here.
    await fetch("/").catch(() => {});
    session.value = { state: "anonymous" };
  }
}

/** Asks who is signed in. */
async function takeUp(): Promise<void> {
  const me = (await get("/api/v1/auth/me")) as User & { csrf_token?: string };
  begin(me, me.csrf_token);
}

export async function login(username: string, password: string): Promise<void> {
  enter(await post("/api/v1/auth/login", { body: { username, password, cookie: true } }));
}

export async function register(username: string, password: string): Promise<void> {
  enter(await post("/api/v1/auth/register", { body: { username, password, cookie: true } }));
}

/** Changes the password. That the current one is wrong does not tell that the session has ended. */
export async function changePassword(current: string, next: string): Promise<void> {
  const body = { current_password: current, new_password: next };
  try {
    enter(await post("/api/v1/auth/password", { body, expected: Code.unauthenticated }));
  } catch (error) {
    if (isUnauthenticated(error)) await check();
    throw error;
  }
}

/** Ends the session. The page is loaded anew, here and in the browser's other tabs, so that nothing of it stays. */
export async function logout(): Promise<void> {
  try {
    await post("/api/v1/auth/logout", { expected: Code.unauthenticated });
  } catch (error) {
    // A session that has ended already needs no end.
    if (!isUnauthenticated(error)) throw error;
  }
  tabs.postMessage(ENDED);
  leave();
}

function isUnauthenticated(error: unknown): boolean {
  return error instanceof ApiError && error.code === Code.unauthenticated;
}

/** Whether the page is loaded anew whatever it holds: nobody is asked, as it is another person's already, or nobody's. */
export let isGivenUp = false;

/** Loads the page anew, without what it kept for the account. */
function leave(): void {
  isGivenUp = true;
  sessionStorage.clear();
  location.assign("/");
}

const ENDED = "session ended";
const BEGUN = "session begun";

/** The console's other tabs in this browser. */
const tabs = new BroadcastChannel("lkr");
tabs.addEventListener("message", ({ data }) => {
  if (data === ENDED && "user" in session.peek()) leave();
  if (data === BEGUN) followSession();
});

/** Goes on with the session that began in another tab: the browser sends its cookie now, to which this page's token does not belong. */
function followSession(): void {
  // What was shown to nobody in particular is not what the account may read.
  if (session.peek().state === "anonymous") location.reload();
  else takeUp().catch(end);
}

/** Takes up the session that began in another tab since the page had so many, and tells whether there is one. */
export async function isLaterThan(count: number): Promise<boolean> {
  if (sessionCount.peek() === count) await takeUp().catch(() => {});
  return sessionCount.peek() !== count;
}

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
  tabs.postMessage(BEGUN);
  begin(login.user, login.csrf_token);
}

function begin(account: User, csrfToken: string | null | undefined): void {
  const isOther = lastUser !== undefined && lastUser !== account.username;
  // Another account finds nothing of what the page holds for the last one, such as its uploads.
  if (isOther) {
    isGivenUp = true;
    setCsrfToken(null);
    location.reload();
    return;
  }
  setCsrfToken(csrfToken ?? null);
  session.value = { state: "user", user: account };
}

/** Waits until somebody is signed in who may do something. */
export function signedIn(): Promise<void> {
  return new Promise((resolve) => {
    const stop = effect(() => {
      if (session.value.state !== "user" || isHidden.value) return;
      // The effect has its result only after its first run.
      queueMicrotask(() => stop());
      resolve();
    });
  });
}

/** The page asks for a login. What it holds for the account stays. */
function end(): void {
  const current = session.peek();
  if (!("user" in current)) return;
  setCsrfToken(null);
  session.value = { state: "ended", user: current.user };
}

/** Follows a change of the account's role: pages offer what it may do now. */
async function followRole(): Promise<void> {
  const me = await get("/api/v1/auth/me").catch(() => undefined);
  const current = session.peek();
  if (me === undefined || current.state !== "user" || me.username !== current.user.username) return;
  if (me.role !== current.user.role) session.value = { state: "user", user: { ...current.user, role: me.role } };
}

/** Follows what a refusal says of the session: its end, a role that was lost, a password that must be changed. */
function noticeRefusal(error: ApiError): void {
  const current = session.peek();
  if (current.state !== "user") return;
  if (error.code === Code.unauthenticated) end();
  if (error.code === Code.forbidden) void followRole();
  if (error.code === Code.passwordChangeRequired && !current.user.must_change_password) {
    session.value = { state: "user", user: { ...current.user, must_change_password: true } };
  }
}
