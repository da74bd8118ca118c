import type { ComponentChildren, ComponentType } from "preact";
import lazy, { ErrorBoundary } from "preact-iso/lazy";
import { LocationProvider, Route, Router, useLocation } from "preact-iso/router";
import { useEffect, useErrorBoundary, useRef } from "preact/hooks";
import { options } from "./options";
import { AccountPage } from "./pages/account";
import { AddPage } from "./pages/add";
import { BrokenPage, ForbiddenPage, MissingPage, UnloadedPage } from "./pages/errors";
import { DocumentPage } from "./pages/document";
import { DocumentsPage } from "./pages/documents";
import { ForcedPasswordPage, LoginPage, UnreachablePage } from "./pages/login";
import { SearchPage } from "./pages/search";
import { TaskPage } from "./pages/task";
import { TasksPage } from "./pages/tasks";
import { isAdmin, isHidden, session, user } from "./session";
import { Loading, Toasts } from "./ui/feedback";
import { LeaveGuard } from "./ui/leaving";
import { Shell } from "./ui/shell";

/** Addresses of this host that are not the console's. */
const CONSOLE = /^\/(?!(api|docs|mcp|metrics|healthz|readyz|console)(\/|$))/;

const administration = () => import("./pages/administration");
/** A page of the administration. A server that was updated since the page was loaded has its scripts no more. */
const adminPage = <K extends keyof Awaited<ReturnType<typeof administration>>>(name: K) =>
  lazy(() => administration().then((pages) => pages[name] as Page, () => UnloadedPage as Page));

const SpacesPage = adminPage("SpacesPage");
const SpacePage = adminPage("SpacePage");
const KeysPage = adminPage("KeysPage");
const UsersPage = adminPage("UsersPage");
const GroupsPage = adminPage("GroupsPage");
const GroupPage = adminPage("GroupPage");
const SettingsPage = adminPage("SettingsPage");
const TaxonomyPage = adminPage("TaxonomyPage");
const StatisticsPage = adminPage("StatisticsPage");
const EvaluationPage = adminPage("EvaluationPage");
const WebhooksPage = adminPage("WebhooksPage");
const WebhookPage = adminPage("WebhookPage");
const AuditPage = adminPage("AuditPage");
const BackupPage = adminPage("BackupPage");

export function App() {
  return (
    <LocationProvider scope={CONSOLE}>
      <Guard />
      <LeaveGuard />
      <Toasts />
    </LocationProvider>
  );
}

/** What the session allows: the pages, or what must come first. */
function Guard() {
  const current = session.value;
  /** Whether the page holds something of an account. */
  const wasShown = useRef(false);
  if (current.state === "loading") return <Loading />;
  if (current.state === "unknown") return <UnreachablePage error={current.error} />;
  if (current.state === "anonymous" && options.login_for_reads) return <LoginPage reason="needed" />;
  const hasEnded = current.state === "ended";
  const mustChangePassword = !hasEnded && isHidden.value;
  if (mustChangePassword && !wasShown.current) return <ForcedPasswordPage />;
  wasShown.current ||= user.value !== null;
  // What the person has typed stays on the page, which is hidden meanwhile.
  return (
    <>
      {hasEnded && <LoginPage reason="ended" />}
      {mustChangePassword && <ForcedPasswordPage />}
      <div class="kept" hidden={isHidden.value}>
        <Shell>
          <Contained>
            <ErrorBoundary>
              <Router>
                <Route path="/" component={SearchPage} />
                <Route path="/login" component={LoginPage} />
                <Route path="/documents" component={DocumentsPage} />
                <Route path="/documents/:id" component={DocumentPage} />
                <Route path="/add" component={forAccounts(AddPage)} />
                <Route path="/tasks" component={TasksPage} />
                <Route path="/tasks/:id" component={TaskPage} />
                <Route path="/account" component={forAccounts(AccountPage)} />
                <Route path="/spaces" component={SpacesPage} />
                <Route path="/spaces/:space" component={SpacePage} />
                <Route path="/keys" component={forAccounts(KeysPage)} />
                <Route path="/admin/users" component={forAdmins(UsersPage)} />
                <Route path="/admin/groups" component={forAdmins(GroupsPage)} />
                <Route path="/admin/groups/:group" component={forAdmins(GroupPage)} />
                <Route path="/admin/settings" component={forAdmins(SettingsPage)} />
                <Route path="/admin/taxonomy" component={forAdmins(TaxonomyPage)} />
                <Route path="/admin/statistics" component={forAdmins(StatisticsPage)} />
                <Route path="/admin/evaluation" component={forAdmins(EvaluationPage)} />
                <Route path="/admin/webhooks" component={forAdmins(WebhooksPage)} />
                <Route path="/admin/webhooks/:id" component={forAdmins(WebhookPage)} />
                <Route path="/admin/audit" component={forAdmins(AuditPage)} />
                <Route path="/admin/backup" component={forAdmins(BackupPage)} />
                <Route default component={MissingPage} />
              </Router>
            </ErrorBoundary>
          </Contained>
        </Shell>
      </div>
    </>
  );
}

/** A page. What its address names it reads by `useRoute`. */
type Page = ComponentType<object>;

const guarded = new Map<Page, Page>();

/** One component for each guarded page: a new one at each rendering would lose the page's state. */
function guard(page: Page, allow: () => ComponentChildren): Page {
  const Inner = page;
  const known = guarded.get(page);
  if (known) return known;
  const Guarded: Page = () => <>{allow() ?? <Inner />}</>;
  guarded.set(page, Guarded);
  return Guarded;
}

function forAccounts(page: Page): Page {
  return guard(page, () => (user.value === null ? <LoginPage reason="page" /> : null));
}

function forAdmins(page: Page): Page {
  return guard(page, () => {
    if (user.value === null) return <LoginPage reason="page" />;
    return isAdmin.value ? null : <ForbiddenPage />;
  });
}

/** A page that fails is told, and the navigation leads to the others. */
function Contained({ children }: { children: ComponentChildren }) {
  const [error, forget] = useErrorBoundary((error) => console.error(error));
  const { path } = useLocation();
  useEffect(forget, [path]);
  return error ? <BrokenPage error={error as unknown} /> : <>{children}</>;
}
