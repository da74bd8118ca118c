// What stands around every page: the navigation, the account, and the state of the connection.
import type { ComponentChildren } from "preact";
import { useLocation } from "preact-iso/router";
import { useEffect, useRef, useState } from "preact/hooks";
import { connection } from "../api/task_events";
import { t } from "../i18n";
import { options } from "../options";
import { language, setLanguage, setTheme, theme, type Language, type Theme } from "../preferences";
import { ACCOUNT_PLACES, ADMIN_PLACES, PLACES, type Place } from "../routes";
import { isAdmin, logout, user } from "../session";
import { useAction } from "../use_resource";
import { IconButton, Select } from "./controls";
import { errorText, say } from "./feedback";
import { Icon } from "./icon";

export function Shell({ children }: { children: ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  const { path } = useLocation();
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    setOpen(false);
    // A new page begins at its heading, for screen readers too. The first one begins where the browser puts the focus.
    if (!isFirst.current) main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [path]);
  useScrollPlaces(main, path);
  return (
    <div class="shell">
      <a class="skip" href="#content">{t("shell.skip")}</a>
      <nav class="bar" aria-label={t("shell.menu")}>
        <IconButton
          icon="menu"
          label={t("shell.menu")}
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        />
        <a class="brand" href="/">lkr</a>
      </nav>
      <header
        class={isOpen ? "side open" : "side"}
        id="navigation"
        onKeyDown={(event) => event.key === "Escape" && setOpen(false)}
      >
        <a class="brand" href="/"><img src="/console/icon.svg" alt="" width={24} height={24} />lkr</a>
        <nav aria-label={t("shell.main")}>
          <Places places={user.value === null ? PLACES : [...PLACES, ...ACCOUNT_PLACES]} />
        </nav>
        {isAdmin.value && (
          <nav aria-labelledby="administration">
            <h2 id="administration">{t("shell.administration")}</h2>
            <Places places={ADMIN_PLACES} />
          </nav>
        )}
        <Foot />
      </header>
      {isOpen && <div class="shade" onClick={() => setOpen(false)} />}
      <main id="content" ref={main} tabIndex={-1}>
        {connection.value === "lost" && <p class="connection" role="status">{t("shell.offline")}</p>}
        {children}
      </main>
    </div>
  );
}

/** A page begins at its top, and one that the browser goes back to where it was left. */
function useScrollPlaces(main: { current: HTMLElement | null }, path: string): void {
  const places = useRef(new Map<string, number>());
  const last = useRef(path);
  if (last.current !== path) {
    // Noted before the next page is drawn, which may be shorter.
    places.current.set(last.current, main.current?.scrollTop ?? 0);
    last.current = path;
  }
  const returning = useRef(false);
  useEffect(() => {
    const leave = () => (returning.current = true);
    window.addEventListener("popstate", leave, { capture: true });
    return () => window.removeEventListener("popstate", leave, { capture: true });
  }, []);
  useEffect(() => {
    const element = main.current;
    if (element === null) return;
    const place = returning.current ? (places.current.get(path) ?? 0) : 0;
    returning.current = false;
    element.scrollTo({ top: place });
    // What the page shows may come later than the page. A person who scrolls decides otherwise.
    const until = Date.now() + RETURN_MS;
    const timer = setInterval(() => {
      if (place === 0 || Date.now() > until) stop();
      else if (element.scrollTop !== place) element.scrollTo({ top: place });
    }, 50);
    const stop = () => clearInterval(timer);
    const gestures = ["wheel", "touchmove", "keydown", "pointerdown"] as const;
    for (const gesture of gestures) element.addEventListener(gesture, stop, { passive: true });
    return () => {
      stop();
      for (const gesture of gestures) element.removeEventListener(gesture, stop);
    };
  }, [path]);
}

/** How long a page that the browser goes back to has to become as long as it was. */
const RETURN_MS = 2000;

function Places({ places }: { places: Place[] }) {
  const { path } = useLocation();
  const isHere = (href: string) => path === href || (href !== "/" && path.startsWith(`${href}/`));
  return (
    <ul>
      {places.map(({ href, label, icon }) => (
        <li key={href}>
          <a href={href} aria-current={isHere(href) ? "page" : undefined}>
            <Icon name={icon} />
            {t(label)}
          </a>
        </li>
      ))}
    </ul>
  );
}

function Foot() {
  const leave = useAction(logout);
  useEffect(() => {
    if (leave.error) say(errorText(leave.error));
  }, [leave.error]);
  return (
    <div class="foot">
      {user.value === null ? (
        <a class="button primary" href="/login">{t("shell.sign_in")}</a>
      ) : (
        <div class="who">
          <a href="/account" title={t("shell.signed_in", { name: user.value.username })}>
            <Icon name="user" />
            <bdi>{user.value.username}</bdi>
          </a>
          <IconButton icon="logout" label={t("shell.sign_out")} isBusy={leave.isBusy} onClick={() => void leave.run()} />
        </div>
      )}
      <Preferences />
      <p class="links">
        <a href="/docs" target="_blank">{t("shell.api")}</a>
        {options.version !== "" && <span>lkr {options.version}</span>}
      </p>
    </div>
  );
}

/** The language and the theme. */
export function Preferences() {
  const themes: Theme[] = ["auto", "light", "dark"];
  return (
    <div class="preferences">
      <Select
        label={t("shell.language")}
        value={language.value}
        choices={[{ value: "en", label: "English" }, { value: "zh", label: "中文" }]}
        onChange={(value) => setLanguage(value as Language)}
      />
      <Select
        label={t("shell.theme")}
        value={theme.value}
        choices={themes.map((value) => ({ value, label: t(`shell.theme.${value}`) }))}
        onChange={(value) => setTheme(value as Theme)}
      />
    </div>
  );
}

