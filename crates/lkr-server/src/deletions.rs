//! The rights and the audit entries of tasks that delete documents.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use lkr::{
    DocId, Document, Task,
    ports::{
        DeletionPolicy,
        ingest::{Error, Result},
        state::Write,
    },
};
use lkr_auth::{Account, Actor, AuditAction, AuditLog, Auth, KeyId, Role};
use lkr_spaces::{Caller, Spaces};
use serde_json::Map;

use crate::http::Rights;

/// Looks rights up again for each document. It knows accounts and spaces once the service is open.
#[derive(Debug, Clone, Default)]
pub struct Deletions(Arc<OnceLock<(Auth, Spaces)>>);

impl Deletions {
    /// Uses these accounts and spaces from now on.
    pub fn follow(&self, auth: Auth, spaces: Spaces) {
        // It is opened once.
        let _ = self.0.set((auth, spaces));
    }

    /// The rights of a task's creator now; `None` if the account was deleted or disabled, or the key by which it asked for
    /// the task ended.
    async fn rights(&self, task: &Task, key: Option<&str>) -> Result<Option<Rights>> {
        let (auth, spaces) = self.0.get().ok_or_else(|| Error::of_policy(true, "the service is starting"))?;
        let account = auth.account(&task.created_by.name).await;
        let account = account.map_err(of_auth)?;
        let is_creator = |account: &Account| task.created_by.is(&account.id) && !account.disabled;
        let Some(account) = account.filter(is_creator) else { return Ok(None) };
        let no_id = |_| Error::of_policy(false, "the key of the task has no id");
        let key: Option<KeyId> = key.map(str::parse).transpose().map_err(no_id)?;
        let limits = match key {
            Some(id) => {
                let scope = auth.key_scope(&account.username, id).await.map_err(of_auth)?;
                let Some(scope) = scope else { return Ok(None) };
                Some(scope)
            }
            None => None,
        };
        let directory = spaces.directory().await;
        let directory = directory.map_err(|error| Error::of_policy(error.is_retryable(), error))?;
        let caller = Caller::Account { id: account.id, is_admin: account.role == Role::Admin, key: limits };
        Ok(Some(Rights { caller, key, directory }))
    }
}

fn of_auth(error: lkr_auth::Error) -> Error {
    Error::of_policy(error.is_retryable(), error)
}

#[async_trait]
impl DeletionPolicy for Deletions {
    async fn may_delete(&self, task: &Task, key: Option<&str>, document: &Document) -> Result<bool> {
        let rights = self.rights(task, key).await?;
        let may_change = |rights: Rights| {
            rights.may_read(&document.space) && rights.may_change(&document.space, &document.created_by)
        };
        Ok(rights.is_some_and(may_change))
    }

    fn on_delete(&self, task: &Task, doc_id: DocId) -> Result<Vec<Write>> {
        let (name, id) = (task.created_by.name.as_str(), task.created_by.id.as_str());
        let request_id = task.task_id.to_string();
        let by = Actor { actor: name, account_id: Some(id), request_id: &request_id };
        let entry = AuditLog::entry(by, AuditAction::DocumentDelete, &doc_id.to_string(), Map::new());
        Ok(vec![entry.map_err(|error| Error::of_policy(false, error))?])
    }
}
