//! Prints a report as lines or as JSON.

use std::io::{Write, stdout};

use anyhow::Result;
use lkr::doctor::{DoctorReport, Finding, RepairOutcome};
use serde_json::{Value, json};

use crate::terminal::plural;

pub(super) fn print(examined: &DoctorReport, as_json: bool) -> Result<()> {
    if as_json {
        return Ok(writeln!(stdout(), "{}", object(examined))?);
    }
    for finding in &examined.report.findings {
        writeln!(stdout(), "{}", line(finding))?;
    }
    Ok(writeln!(stdout(), "{}", summary(examined))?)
}

fn line(finding: &Finding) -> String {
    let Finding { what, title, remedy, outcome } = finding;
    let title = title.as_ref().map(|title| format!(" ({title:?})")).unwrap_or_default();
    let action = match outcome {
        RepairOutcome::Unrepaired => remedy.clone(),
        RepairOutcome::Repaired => format!("done: {remedy}"),
        RepairOutcome::Queued => format!("when the server runs: {remedy}"),
        RepairOutcome::Failed(reason) => format!("not done: {remedy}: {reason}"),
    };
    format!("{what}{title}: {action}")
}

fn summary(examined: &DoctorReport) -> String {
    let DoctorReport { report, is_partial, aside, running_processes } = examined;
    let unrepaired = report.findings.iter().filter(|finding| finding.is_unrepaired()).count();
    let mut summary = match *is_partial {
        true => "nothing else was checked, because the pages of the store are damaged".to_owned(),
        false => {
            format!("{}, {}", plural(report.documents, "document"), plural(report.counts.total(), "point"))
        }
    };
    summary += &match (report.findings.len(), unrepaired) {
        (0, _) => "; nothing is wrong".to_owned(),
        (all, 0) => format!("; {all} found, all repaired or queued"),
        (all, unrepaired) => format!("; {all} found, {unrepaired} not repaired"),
    };
    if *running_processes > 0 {
        summary += &format!("; {running_processes} processes may have changed data during the check");
    }
    let aside = aside.as_ref().map(|aside| format!("; data that was moved aside is in {}", aside.display()));
    summary + &aside.unwrap_or_default()
}

fn object(examined: &DoctorReport) -> Value {
    let finding = |finding: &Finding| {
        let (outcome, reason) = match &finding.outcome {
            RepairOutcome::Unrepaired => ("left", None),
            RepairOutcome::Repaired => ("mended", None),
            RepairOutcome::Queued => ("queued", None),
            RepairOutcome::Failed(reason) => ("failed", Some(reason)),
        };
        let Finding { what, title, remedy, .. } = finding;
        json!({ "what": what, "title": title, "remedy": remedy, "outcome": outcome, "reason": reason })
    };
    let counts = examined.report.counts;
    json!({
        "findings": examined.report.findings.iter().map(finding).collect::<Vec<_>>(),
        "documents": examined.report.documents,
        "points": { "l1": counts.l1, "l2": counts.l2, "l3": counts.l3, "chunks": counts.chunks },
        "is_partial": examined.is_partial,
        "aside": examined.aside,
        "running_processes": examined.running_processes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summary_of_one_document_is_in_the_singular() {
        let mut examined = DoctorReport::default();
        examined.report.documents = 1;
        examined.report.counts.l1 = 1;
        assert_eq!(summary(&examined), "1 document, 1 point; nothing is wrong");
    }
}
