// The caller's own account.
import { t, tData } from "../i18n";
import { user } from "../session";
import { Fact, Facts, Foreign, Time } from "../ui/data";
import { say } from "../ui/feedback";
import { Page, Section } from "../ui/page";
import { Preferences } from "../ui/shell";
import { PasswordForm } from "./login";

export function AccountPage() {
  const account = user.value;
  if (account === null) return null;
  return (
    <Page title={t("account.title")} width="text">
      <Facts>
        <Fact name={t("login.username")}><Foreign>{account.username}</Foreign></Fact>
        <Fact name={t("account.role")}>{tData("role", account.role)}</Fact>
        <Fact name={t("common.created")}><Time at={account.created_at} /></Fact>
      </Facts>
      <Section title={t("account.preferences")}>
        <Preferences />
        <p class="hint">{t("account.preferences_hint")}</p>
      </Section>
      <Section title={t("password.title")}>
        <PasswordForm onDone={() => say(t("password.changed"))} />
      </Section>
    </Page>
  );
}
