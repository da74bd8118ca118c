//! Plans and reports.

use std::{
    io::{self, Write},
    time::Duration,
};

use anyhow::Result;
use lkr_sync::{Issue, IssueKind, Plan, Report};
use serde_json::{Value, json};

use crate::{
    exit::Exit,
    terminal::{Output, Style, clean, plural},
};

/// The most documents and issues that are listed.
const MAX_SHOWN: usize = 20;

/// Prints what would be done, a line for each file. Documents are deleted only with `delete`, and otherwise kept.
pub(super) fn plan(output: &Output, plan: &Plan, delete: bool) -> Result<Exit> {
    if output.style == Style::Json {
        output.json(&json(plan, delete)?)?;
        return Ok(exit(&plan.issues));
    }
    let mut uploads: Vec<_> = plan.uploads.iter().collect();
    uploads.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    for upload in uploads {
        let sign = if upload.replaces { "changed" } else { "new" };
        line(output, sign, &upload.path, "")?;
    }
    for step in &plan.moves {
        line(output, "moved", &step.to, &format!("  from {}", step.from))?;
    }
    // A program that reads paths gets those that something would be done about.
    for step in plan.deletes.iter().filter(|_| delete || output.is_for_people()) {
        line(output, if delete { "deleted" } else { "kept" }, &step.path, "")?;
    }
    let (deleted, kept) = if delete { (plan.deletes.len(), 0) } else { (0, plan.deletes.len()) };
    let to_do = plan.uploads.len() + plan.moves.len() + deleted;
    output.note(&format!("{to_do} to do, {} unchanged", plan.unchanged))?;
    note_kept(output, kept)?;
    issues(output, &plan.issues)?;
    Ok(exit(&plan.issues))
}

/// The plan, in which `kept` has the documents that are deleted only with `--delete`.
fn json(plan: &Plan, delete: bool) -> Result<Value> {
    let mut value = serde_json::to_value(plan)?;
    let deletes = value.get_mut("deletes").map(Value::take).unwrap_or_default();
    let (deletes, kept) = if delete { (deletes, json!([])) } else { (json!([]), deletes) };
    if let Value::Object(fields) = &mut value {
        fields.insert("deletes".to_owned(), deletes);
        fields.insert("kept".to_owned(), kept);
    }
    Ok(value)
}

/// Prints what is done, or would be done, about one path.
pub(super) fn line(output: &Output, sign: &str, path: &str, more: &str) -> Result<()> {
    if output.is_for_people() {
        output.line(&clean(&format!("{sign:<8} {path}{more}")))
    } else {
        output.line(path)
    }
}

/// Lists the documents that would be deleted.
pub(super) fn deletes(plan: &Plan) -> io::Result<()> {
    let mut err = io::stderr();
    for step in plan.deletes.iter().take(MAX_SHOWN) {
        writeln!(err, "  {}", clean(&step.path))?;
    }
    match plan.deletes.len().saturating_sub(MAX_SHOWN) {
        0 => Ok(()),
        more => writeln!(err, "  and {more} more"),
    }
}

/// Prints what was done.
pub(super) fn report(output: &Output, report: &Report, took: Duration) -> Result<Exit> {
    let Report { new, changed, moved, deleted, kept, unchanged, issues: found } = report;
    match output.style {
        Style::Json => output.json(&serde_json::to_value(report)?)?,
        Style::Names => {}
        Style::People => output.line(&format!(
            "{new} new, {changed} changed, {moved} moved, {deleted} deleted, {unchanged} unchanged in {:.1} s",
            took.as_secs_f64()
        ))?,
    }
    note_kept(output, *kept)?;
    issues(output, found)?;
    Ok(exit(found))
}

fn note_kept(output: &Output, kept: usize) -> Result<()> {
    if kept == 0 {
        return Ok(());
    }
    let documents = plural(kept as u64, "document");
    output.note(&format!("{documents} whose files are gone: kept; --delete deletes them"))
}

fn issues(output: &Output, issues: &[Issue]) -> Result<()> {
    if output.style == Style::Json {
        return Ok(());
    }
    for Issue { path, kind, reason } in issues.iter().take(MAX_SHOWN) {
        let name = if path.is_empty() { "." } else { path };
        output.warn(&format!("{name}: {}{reason}", explained(*kind)))?;
    }
    if issues.iter().any(|issue| matches!(issue.kind, IssueKind::Refused | IssueKind::TooLarge)) {
        output.note("files that can never be sent may be named in .lkrignore")?;
    }
    match issues.len().saturating_sub(MAX_SHOWN) {
        0 => Ok(()),
        more => output.warn(&format!("and {more} more; --json lists all")),
    }
}

const fn explained(kind: IssueKind) -> &'static str {
    match kind {
        IssueKind::Refused => "refused: ",
        IssueKind::Unreadable => "cannot be read: ",
        IssueKind::TooLarge => "too large: ",
        IssueKind::IgnoreFile => "ignore file: ",
        _ => "not synchronised: ",
    }
}

/// A file that has no document leaves the space unequal to the folder.
fn exit(issues: &[Issue]) -> Exit {
    let is_partial = issues.iter().any(|issue| issue.kind != IssueKind::IgnoreFile);
    if is_partial { Exit::Partly } else { Exit::Done }
}

#[cfg(test)]
mod tests {
    use lkr_sync::{PlannedDelete, Reason};

    use super::*;

    #[test]
    fn plan_without_a_permission_to_delete_keeps_documents_in_json() {
        let delete = PlannedDelete { doc_id: "d".to_owned(), path: "a.txt".to_owned(), reason: Reason::Gone };
        let plan = Plan { deletes: vec![delete], ..Plan::default() };
        let count = |value: &Value, name: &str| value[name].as_array().unwrap().len();
        for (permission, expected) in [(true, (1, 0)), (false, (0, 1))] {
            let value = json(&plan, permission).unwrap();
            assert_eq!((count(&value, "deletes"), count(&value, "kept")), expected);
        }
    }
}
