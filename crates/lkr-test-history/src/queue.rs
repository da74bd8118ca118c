//! Whether the leases of a queue were exclusive, and every task was finished once.

use std::collections::BTreeMap;

use crate::{Anomaly, AnomalyKind, Call, Operation, Outcome};

/// Whether leases are also judged by the time that they last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaseTimes {
    /// No lease may be given to another worker before it ends. Only if nothing sets the clock of the queue.
    Checked,
    /// Only tokens are judged.
    Ignored,
}

/// What happened to a task.
#[derive(Default)]
struct Task<'a> {
    enqueued: Vec<&'a Operation>,
    /// The acknowledged claims by their tokens.
    claims: BTreeMap<u64, &'a Operation>,
    /// The heartbeats, finishes and retries that were not refused, with their tokens.
    uses: Vec<(u64, &'a Operation)>,
    anomalies: Vec<Anomaly>,
}

/// Checks the claims, heartbeats, finishes and retries of a history that queues each task once; other operations are
/// ignored. If the queue is empty at the end, `is_drained`, every task must have been finished.
#[must_use]
pub fn check_queue(history: &[Operation], leases: LeaseTimes, is_drained: bool) -> Vec<Anomaly> {
    let mut anomalies = Vec::new();
    for (name, mut task) in tasks(history) {
        anomalies.append(&mut task.anomalies);
        anomalies.extend(task.tokens(name));
        anomalies.extend(task.uses_after_loss(name));
        anomalies.extend(task.ends(name, is_drained));
        if leases == LeaseTimes::Checked {
            anomalies.extend(task.early_claims(name));
        }
    }
    anomalies
}

fn tasks(history: &[Operation]) -> BTreeMap<&str, Task<'_>> {
    let mut tasks: BTreeMap<&str, Task<'_>> = BTreeMap::new();
    for operation in history {
        match (&operation.call, &operation.outcome) {
            (Call::Enqueue(task), _) => tasks.entry(task).or_default().enqueued.push(operation),
            (Call::Claim { .. }, Outcome::Claimed { task: name, token }) => {
                let task = tasks.entry(name).or_default();
                if let Some(other) = task.claims.insert(*token, operation) {
                    let detail = format!("two claims of {name} have the token {token}");
                    let shown = [other, operation];
                    task.anomalies.push(Anomaly::new(AnomalyKind::TokenNotLarger, detail, shown));
                }
            }
            (
                Call::Heartbeat { task, token, .. }
                | Call::Finish { task, token }
                | Call::Retry { task, token },
                outcome,
            ) if *outcome != Outcome::Lost => tasks.entry(task).or_default().uses.push((*token, operation)),
            _ => {}
        }
    }
    tasks
}

impl Task<'_> {
    /// A claim that began after another one ended has a larger token.
    fn tokens(&self, name: &str) -> Vec<Anomaly> {
        // The claim with a smaller token that began last; only it needs to be compared.
        let mut last: Option<(u64, &Operation)> = None;
        let mut found = Vec::new();
        for (token, claim) in &self.claims {
            if let Some((smaller, before)) = last
                && claim.precedes(before)
            {
                let detail = format!("{name} was claimed with the token {token} and then with {smaller}");
                found.push(Anomaly::new(AnomalyKind::TokenNotLarger, detail, [*claim, before]));
            }
            if last.is_none_or(|(_, before)| before.start < claim.start) {
                last = Some((*token, claim));
            }
        }
        found
    }

    /// Accepted uses that began after a newer claim, or after the task was given back.
    fn uses_after_loss(&self, name: &str) -> Vec<Anomaly> {
        let mut found = Vec::new();
        for (token, used) in self.uses.iter().filter(|(_, used)| used.outcome == Outcome::Done) {
            let mut newer = self.claims.range(token + 1..).map(|(newer, claim)| (*newer, *claim));
            if let Some((newer, claim)) = newer.find(|(_, claim)| claim.precedes(used)) {
                let detail =
                    format!("token {token} of {name} was accepted after the claim with token {newer}");
                found.push(Anomaly::new(AnomalyKind::LeaseUsedAfterLoss, detail, [claim, *used]));
            }
            let mut ended = self.uses.iter().filter(|(other, ended)| {
                other == token && ended.outcome == Outcome::Done && !is_heartbeat(ended)
            });
            if let Some((_, ended)) = ended.find(|(_, ended)| ended.precedes(used)) {
                let detail = format!("token {token} of {name} was accepted after it was given back");
                found.push(Anomaly::new(AnomalyKind::LeaseUsedAfterLoss, detail, [*ended, *used]));
            }
        }
        found
    }

    /// A task is queued, claimed, finished once, and gone.
    fn ends(&self, name: &str, is_drained: bool) -> Vec<Anomaly> {
        let is_finish = |operation: &Operation| matches!(operation.call, Call::Finish { .. });
        let finishes: Vec<&Operation> =
            self.uses.iter().map(|(_, used)| *used).filter(|used| is_finish(used)).collect();
        let done: Vec<&Operation> =
            finishes.iter().copied().filter(|finish| finish.outcome == Outcome::Done).collect();
        let mut found = Vec::new();
        if done.len() > 1 {
            let detail = format!("{name} was finished {} times", done.len());
            found.push(Anomaly::new(AnomalyKind::FinishedTwice, detail, done.iter().copied()));
        }
        for claim in self.claims.values() {
            if let Some(finish) = done.iter().find(|finish| finish.precedes(claim)) {
                let detail = format!("{name} was claimed after it was finished");
                found.push(Anomaly::new(AnomalyKind::ClaimedAfterFinish, detail, [*finish, *claim]));
            }
            if !self.enqueued.iter().any(|enqueue| !claim.precedes(enqueue)) {
                let detail = format!("{name} was claimed before it was queued");
                found.push(Anomaly::new(AnomalyKind::UnknownTask, detail, [*claim]));
            }
        }
        let accepted = self.enqueued.iter().filter(|enqueue| enqueue.outcome == Outcome::Done);
        if is_drained && finishes.is_empty() {
            let detail = format!("{name} was queued and never finished");
            found.extend(
                accepted.map(|enqueue| Anomaly::new(AnomalyKind::TaskLost, detail.clone(), [*enqueue])),
            );
        }
        found
    }

    /// Claims that were acknowledged while an earlier lease certainly lasted.
    fn early_claims(&self, name: &str) -> Vec<Anomaly> {
        let mut found = Vec::new();
        for (token, claim) in &self.claims {
            let before = self.claims.range(..token).map(|(_, claim)| *claim);
            let heartbeats = self.uses.iter().filter(|(other, used)| other < token && is_heartbeat(used));
            let renewed = heartbeats.map(|(_, used)| *used).filter(|used| used.outcome == Outcome::Done);
            let lasting = before.chain(renewed).filter(|set| set.precedes(claim)).max_by_key(|set| set.start);
            let Some(lasting) = lasting else { continue };
            // What may have ended or shortened that lease before the claim.
            let may_have_ended = self.uses.iter().any(|(other, used)| {
                other < token
                    && used.start < claim.latest()
                    && used.latest() > lasting.start
                    && !std::ptr::eq(*used, lasting)
            });
            if !may_have_ended && claim.latest() < lasting.start.saturating_add(lease(lasting)) {
                let detail = format!("{name} was claimed while another worker held it");
                found.push(Anomaly::new(AnomalyKind::ClaimedWhileHeld, detail, [lasting, *claim]));
            }
        }
        found
    }
}

const fn is_heartbeat(operation: &Operation) -> bool {
    matches!(operation.call, Call::Heartbeat { .. })
}

/// The lease in nanoseconds that a claim or a heartbeat asked for.
const fn lease(operation: &Operation) -> u64 {
    match operation.call {
        Call::Claim { lease_ms } | Call::Heartbeat { lease_ms, .. } => lease_ms.saturating_mul(1_000_000),
        _ => 0,
    }
}
