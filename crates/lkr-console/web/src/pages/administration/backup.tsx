// Backups: what they contain, how they are made, and how one is restored.
import type { ComponentChildren } from "preact";
import { t } from "../../i18n";
import { CopyButton } from "../../ui/controls";
import { sayCopied } from "../../ui/feedback";
import { Icon } from "../../ui/icon";
import { Page, Section } from "../../ui/page";

export function BackupPage() {
  return (
    <Page title={t("nav.backup")} width="text">
      <p class="muted">{t("backup.intro")}</p>
      <div class="card spread">
        <p class="hint">{t("backup.download_hint")}</p>
        <a class="button primary" href="/api/v1/backup" download><Icon name="download" />{t("backup.download")}</a>
      </div>
      <Section title={t("backup.included")}>
        <Points>
          <li>{t("backup.included.documents")}</li>
          <li>{t("backup.included.accounts")}</li>
          <li>{t("backup.included.settings")}</li>
          <li>{t("backup.included.tasks")}</li>
        </Points>
      </Section>
      <Section title={t("backup.missing")}>
        <Points>
          <li>{t("backup.missing.key")}</li>
          <li>{t("backup.missing.config")}</li>
        </Points>
      </Section>
      <Section title={t("backup.command")}>
        <p>{t("backup.command_hint")}</p>
        <Command text={`lkr backup --server ${location.origin} --token $TOKEN --output kb.tar`} />
      </Section>
      <Section title={t("backup.restore")}>
        <p>{t("backup.restore_hint")}</p>
        <Command text="lkr restore kb.tar --data-dir /srv/lkr" />
      </Section>
    </Page>
  );
}

function Points({ children }: { children: ComponentChildren }) {
  return <ul class="points">{children}</ul>;
}

function Command({ text }: { text: string }) {
  return (
    <div class="command">
      <pre tabIndex={0}>{text}</pre>
      <CopyButton text={() => text} label={t("common.copy")} onDone={sayCopied} />
    </div>
  );
}
