//! Claims on texts that other processes respect: of near duplicates that arrive at once, one becomes a document.

use lkr_catalog::{Catalog, StoredTextClaim, TextClaims, is_near};
use lkr_domain::{SpaceName, TaskId};
use lkr_state::Peers;

use crate::{Error, Result, space_text::SpaceText};

/// A claim in the store. Dropping it removes it in the background; if that fails, it ends with its task or its process.
#[derive(Debug)]
pub(crate) struct SharedClaim {
    catalog: Catalog,
    space: SpaceName,
    task: TaskId,
}

impl SharedClaim {
    /// Claims a text; `None` while a task has claimed one within `threshold` bits.
    pub(crate) async fn take(
        catalog: &Catalog,
        peers: &Peers,
        task: TaskId,
        text: SpaceText<'_>,
        threshold: u32,
    ) -> Result<Option<Self>> {
        let own = StoredTextClaim::new(task, peers.id(), text.fingerprint);
        let attempt = || async {
            let before = catalog.text_claims(text.space).await?;
            let mut claims = open_claims(catalog, peers, &before, task).await?;
            if claims.iter().any(|other| is_near(other.simhash, own.simhash, threshold)) {
                return Ok(false);
            }
            claims.push(own.clone());
            catalog.replace_text_claims(text.space, &before, &claims).await?;
            Ok::<_, Error>(true)
        };
        let is_claimed = catalog.retry_on_conflict("claim text", attempt).await?;
        let claim = || Self { catalog: catalog.clone(), space: text.space.clone(), task };
        Ok(is_claimed.then(claim))
    }
}

impl Drop for SharedClaim {
    fn drop(&mut self) {
        let (catalog, space, task) = (self.catalog.clone(), self.space.clone(), self.task);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            let attempt = || async {
                let before = catalog.text_claims(&space).await?;
                let others: Vec<_> =
                    before.claims.iter().filter(|claim| claim.task_id != task).cloned().collect();
                if others.len() == before.claims.len() {
                    return Ok(());
                }
                Ok::<_, Error>(catalog.replace_text_claims(&space, &before, &others).await?)
            };
            if let Err(error) = catalog.retry_on_conflict("release text", attempt).await {
                tracing::debug!(%task, %error, "cannot release the claim on a text; it ends with its task");
            }
        });
    }
}

/// The claims of other tasks that are unfinished, by processes that run.
async fn open_claims(
    catalog: &Catalog,
    peers: &Peers,
    claims: &TextClaims,
    task: TaskId,
) -> Result<Vec<StoredTextClaim>> {
    let others: Vec<_> = claims.claims.iter().filter(|claim| claim.task_id != task).collect();
    if others.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<TaskId> = others.iter().map(|claim| claim.task_id).collect();
    let unfinished = catalog.tasks_with(&ids).await?;
    let running = peers.running().await?;
    let is_open = |claim: &StoredTextClaim| {
        let is_unfinished = |id| unfinished.iter().any(|task| task.task_id == id && !task.status.has_ended());
        running.contains(&claim.process) && is_unfinished(claim.task_id)
    };
    Ok(others.into_iter().filter(|claim| is_open(claim)).cloned().collect())
}
