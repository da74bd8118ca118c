//! Long texts, in a lane of their own: their number is bounded by the budget of long texts and not by the workers, so that
//! a text that waits for the budget occupies no worker.

use std::{sync::Arc, time::Duration};

use lkr_state::{Claim, Lane};
use tokio::{sync::watch, task::JoinSet};

use super::{CLAIM_TIMEOUT, Jobs, Runner};
use crate::text_budget::TextPermit;

impl<J: Jobs> Runner<J> {
    /// Works on long texts until `stopped` is true. Only one at a time is claimed and waits for its share of the budget;
    /// the others stay in the queue, where accounts take turns.
    pub(crate) async fn work_on_long_texts(self: Arc<Self>, mut stopped: watch::Receiver<bool>) {
        let mut attempts = JoinSet::new();
        while !*stopped.borrow() {
            let claimed = tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => break,
                claimed = self.queue.claim_in(Lane::Long, self.options.lease, CLAIM_TIMEOUT) => claimed,
            };
            while attempts.try_join_next().is_some() {}
            let claim = match claimed {
                Ok(Some(claim)) => claim,
                Ok(None) => continue,
                Err(error) => {
                    self.pause_claims(&error).await;
                    continue;
                }
            };
            let share = tokio::select! {
                biased;
                _ = stopped.wait_for(|stop| *stop) => None,
                share = self.share_of(&claim) => Some(share),
                // Another worker has the task now, or it left the queue.
                _lost = self.keep_lease(&claim) => continue,
            };
            let Some(share) = share else {
                self.give_back(&claim).await;
                break;
            };
            let runner = Arc::clone(&self);
            attempts.spawn(async move { runner.attend(&claim, share).await });
        }
        while attempts.join_next().await.is_some() {}
    }

    /// Waits for the share of a task's text. A task that cannot be read gets none, and its attempt finds out why.
    async fn share_of(&self, claim: &Claim) -> TextPermit {
        let task = self.catalog.task(claim.task).await.ok()??;
        self.jobs.reserve(&task).await
    }

    /// Returns a claimed task to the queue, from where the next start continues it.
    pub(super) async fn give_back(&self, claim: &Claim) {
        if let Err(error) = self.queue.retry(claim, Duration::ZERO).await {
            tracing::warn!(task = %claim.task, %error, "cannot return a task to the queue; its lease will expire");
        }
    }
}
