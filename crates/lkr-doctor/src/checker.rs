//! The order of the checks.

use std::{collections::HashSet, fmt};

use lkr_domain::{DocId, SpaceName};

use crate::{
    finding::{Finding, RepairOutcome, Report},
    ports::{Ports, Repairer},
    references::References,
    repair::RepairAction,
};

/// Checks everything, and repairs what it finds if there is a `repairer`. Nothing else may write meanwhile. Unreadable data
/// is a finding and does not stop the check.
pub async fn examine(ports: &Ports, repairer: Option<Repairer>) -> Report {
    let mut checker = Checker {
        ports,
        repairer,
        report: Report::default(),
        references: References::default(),
        misplaced: HashSet::new(),
        deleted: HashSet::new(),
        superseded: HashSet::new(),
        spaces: HashSet::new(),
        keeps_orphans: false,
    };
    checker.check_misplaced().await;
    checker.check_lost().await;
    checker.check_records().await;
    checker.check_orphans().await;
    checker.report
}

/// The state of a check.
pub(crate) struct Checker<'p> {
    pub(crate) ports: &'p Ports,
    pub(crate) repairer: Option<Repairer>,
    pub(crate) report: Report,
    pub(crate) references: References,
    /// Documents whose record may be under the key of another of them. No repair touches them.
    pub(crate) misplaced: HashSet<DocId>,
    /// Documents of which a record says that they were deleted.
    pub(crate) deleted: HashSet<DocId>,
    /// Documents whose records are of an earlier revision than their points.
    pub(crate) superseded: HashSet<DocId>,
    /// Spaces that are checked already.
    pub(crate) spaces: HashSet<SpaceName>,
    /// Whether nothing may be removed, because not all lost records are restored.
    pub(crate) keeps_orphans: bool,
}

impl Checker<'_> {
    /// Adds a finding, and repairs it if there is a repairer.
    pub(crate) async fn report_finding(&mut self, what: String, title: Option<&str>, repair: RepairAction) {
        let repair = match self.keeps_orphans && repair.removes() {
            true => {
                RepairAction::Unrepairable("it is kept until all lost records are restored; repair again")
            }
            false => repair,
        };
        let outcome = match &self.repairer {
            Some(repairer) => repair.apply(self.ports, repairer).await,
            None => RepairOutcome::Unrepaired,
        };
        let remedy = repair.description().to_owned();
        self.report.findings.push(Finding { what, title: title.map(str::to_owned), remedy, outcome });
    }

    /// Adds a finding about data that could not be checked.
    pub(crate) async fn report_unchecked(&mut self, subject: impl fmt::Display, error: impl fmt::Display) {
        let what = format!("{subject} cannot be checked: {error}");
        let repair = RepairAction::Unrepairable("repair the damaged data, then check again");
        self.report_finding(what, None, repair).await;
    }
}
