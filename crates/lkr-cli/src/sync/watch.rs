//! A folder that is synchronised as it changes.

use std::time::Instant;

use anyhow::Result;
use lkr_sync::{ApplyOptions, FolderSync, Issue, Next, Report, Trigger, WatchOptions};

use super::{Args, RETRY, explained, print, progress::Progress, remote::HttpRemote};
use crate::{
    exit::{Exit, exit_of, reason},
    terminal::Output,
};

/// What runs of a watched folder need.
#[derive(Debug)]
struct Watch<'a> {
    remote: &'a HttpRemote,
    args: &'a Args,
    output: &'a Output,
    /// The files that the last run did not synchronise.
    issues: Vec<Issue>,
}

/// Synchronises at once and after each change. If the server cannot be reached, it is tried again.
pub(super) fn watch(
    sync: &mut FolderSync,
    remote: &HttpRemote,
    args: &Args,
    output: &Output,
) -> Result<Exit> {
    let mut watch = Watch { remote, args, output, issues: Vec::new() };
    let mut failure = None;
    output.note(&format!("watching {}; stop with Ctrl-C", sync.root().display()))?;
    let mut run = |sync: &mut FolderSync, trigger: Trigger| match watch.run(sync, trigger) {
        Ok(next) => next,
        Err(error) => {
            failure = Some(error);
            Next::Stop
        }
    };
    sync.watch(WatchOptions::default(), &(), &mut run).map_err(explained)?;
    failure.map_or(Ok(Exit::Done), Err)
}

impl Watch<'_> {
    fn run(&mut self, sync: &mut FolderSync, trigger: Trigger) -> Result<Next> {
        let Self { remote, args, output, .. } = *self;
        let progress = Progress::new(output, args.verbose);
        let started = Instant::now();
        let report = sync.plan(remote, &progress).and_then(|plan| {
            let options = ApplyOptions { delete: args.delete, ..ApplyOptions::default() };
            sync.apply(plan, remote, options, &progress)
        });
        progress.finish();
        match report {
            Ok(report) => {
                if trigger == Trigger::Start || is_news(&report, &self.issues) {
                    print::report(output, &report, started.elapsed())?;
                }
                self.issues = report.issues;
                Ok(Next::Watch)
            }
            Err(error) if error.is_retryable() => {
                let error = remote.cause(error);
                if exit_of(&error) == Exit::Refused {
                    return Err(error);
                }
                output.warn(&format!("{}; trying again in {} s", reason(&error), RETRY.as_secs()))?;
                Ok(Next::RetryIn(RETRY))
            }
            Err(error) => Err(remote.cause(error)),
        }
    }
}

/// Whether a run changed something, or left other files out than the one before, which had these issues.
fn is_news(report: &Report, issues: &[Issue]) -> bool {
    report.new + report.changed + report.moved + report.deleted > 0 || report.issues != issues
}

#[cfg(test)]
mod tests {
    use lkr_sync::IssueKind;

    use super::*;

    #[test]
    fn files_that_are_refused_are_reported_when_they_change() {
        let issue = |path: &str| Issue {
            path: path.to_owned(),
            kind: IssueKind::Refused,
            reason: "it has no text".to_owned(),
        };
        let report = |issues: Vec<Issue>| Report { unchanged: 1, issues, ..Report::default() };
        assert!(!is_news(&report(Vec::new()), &[]));
        assert!(is_news(&report(vec![issue("a.pdf")]), &[]));
        assert!(!is_news(&report(vec![issue("a.pdf")]), &[issue("a.pdf")]));
        assert!(is_news(&report(vec![issue("b.pdf")]), &[issue("a.pdf")]));
        assert!(is_news(&report(Vec::new()), &[issue("a.pdf")]));
        assert!(is_news(&Report { new: 1, ..report(Vec::new()) }, &[]));
    }
}
