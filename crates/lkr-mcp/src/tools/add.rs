//! `add`: a new document, for callers that may write.

use std::{collections::BTreeMap, time::Duration};

use lkr::{FailureReason, KnowledgeBase, NewDocument, Task, TaskStatus};
use rmcp::model::{JsonObject, Tool};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{parse, tool};
use crate::{
    Error, ErrorKind, McpServer, Result,
    output::{json, line},
};

pub(super) const NAME: &str = "add";

/// How long the answer waits for the document to be searchable, and the pause between two looks.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    text: String,
    title: Option<String>,
    source: Option<String>,
    metadata: Option<BTreeMap<String, String>>,
    space: Option<String>,
}

#[derive(Debug, Serialize)]
struct Answer {
    id: String,
    task_id: String,
    /// done: it is searchable; pending or running: it will be.
    status: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

pub(super) fn definition() -> Tool {
    tool(
        NAME,
        "Add a document (plain text or Markdown). It is searchable once its status is done. An equal text is not added again.",
        &json!({
            "text": { "type": "string" },
            "title": { "type": "string" },
            "source": { "type": "string", "description": "Where it comes from, such as a URL" },
            "metadata": { "type": "object", "additionalProperties": { "type": "string" } },
            "space": { "type": "string", "default": "default" },
        }),
        &["text"],
        false,
    )
}

pub(super) async fn call(server: &McpServer, arguments: JsonObject) -> Result<Vec<String>> {
    let Arguments { text, title, source, metadata, space } = parse(NAME, arguments)?;
    let document = NewDocument {
        text,
        title: title.unwrap_or_default(),
        source: source.unwrap_or_default(),
        metadata: metadata.unwrap_or_default(),
    };
    let submission = server.access().submission(space.as_deref()).await?;
    let accepted = server.kb().submit(document, submission).await?;
    let task = ended(server.kb(), accepted).await?;
    if let Some(failure) = &task.error {
        let reason = match failure.reason {
            // Its message may name paths.
            FailureReason::Internal => "the knowledge base had an error; see its log".to_owned(),
            FailureReason::Invalid | FailureReason::Cancelled => line(&failure.message),
        };
        return Err(Error::new(ErrorKind::Internal, NAME, format!("the document failed: {reason}")));
    }
    Ok(vec![json(&answer(&task)?)?])
}

/// The task once it has ended, or as it is after [`PATIENCE`].
async fn ended(kb: &KnowledgeBase, accepted: Task) -> Result<Task> {
    let mut task = accepted;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while matches!(task.status, TaskStatus::Pending | TaskStatus::Running)
        && tokio::time::Instant::now() < deadline
    {
        tokio::time::sleep(PAUSE).await;
        match kb.task(task.task_id).await? {
            Some(current) => task = current,
            None => break,
        }
    }
    Ok(task)
}

fn answer(task: &Task) -> Result<Answer> {
    let doc_id = task.doc_id().map_err(|error| Error::new(ErrorKind::Internal, NAME, error))?;
    let warnings = match &task.result {
        Some(lkr::TaskResult::Document(result)) => {
            result.warnings.iter().map(|warning| line(warning)).collect()
        }
        _ => Vec::new(),
    };
    Ok(Answer {
        id: doc_id.to_string(),
        task_id: task.task_id.to_string(),
        status: task.status.name(),
        warnings,
    })
}
