//! Ingests a collection into a knowledge base in this process.

use std::{collections::HashSet, time::Duration};

use anyhow::{Result, bail};
use lkr::{Dedup, KnowledgeBase, ListFilter, NewDocument, Submission, Task, TaskId, TaskStatus};

use crate::collection::Input;

/// Documents per page of a listing.
const PAGE: usize = 1000;

/// The pause between polls of a task.
const POLL: Duration = Duration::from_millis(20);

/// Ingests the documents that are not stored yet, including duplicates, and returns their number. Fails if the
/// knowledge base contains other documents.
pub(crate) async fn import_collection(kb: &KnowledgeBase, inputs: Vec<Input>) -> Result<usize> {
    let stored = sources(kb).await?;
    let expected: HashSet<&str> = inputs.iter().map(|input| input.source.as_str()).collect();
    if let Some(other) = stored.iter().find(|source| !expected.contains(source.as_str())) {
        bail!("the knowledge base contains {other}, which is not in this collection");
    }
    ingest_missing(kb, inputs, &stored).await
}

/// Ingests the documents that are not stored yet, whatever else the knowledge base contains.
pub(crate) async fn import_missing(kb: &KnowledgeBase, inputs: Vec<Input>) -> Result<usize> {
    let stored = sources(kb).await?;
    ingest_missing(kb, inputs, &stored).await
}

async fn ingest_missing(kb: &KnowledgeBase, inputs: Vec<Input>, stored: &HashSet<String>) -> Result<usize> {
    let mut tasks = Vec::new();
    for Input { title, source, text } in inputs {
        if stored.contains(&source) {
            continue;
        }
        let document = NewDocument { title, source, text, ..NewDocument::default() };
        let submission = Submission { dedup: Dedup::None, ..Submission::default() };
        tasks.push(kb.submit(document, submission).await?);
    }
    for task in &tasks {
        wait_for(kb, task).await?;
    }
    Ok(tasks.len())
}

/// The sources of all documents. Waits first for the documents that an interrupted run left unfinished.
async fn sources(kb: &KnowledgeBase) -> Result<HashSet<String>> {
    while is_busy(kb).await? {
        tokio::time::sleep(POLL).await;
    }
    let mut sources = HashSet::new();
    let mut after = None;
    loop {
        let page = kb.list(&ListFilter::default(), after, PAGE).await?;
        sources.extend(page.items.into_iter().map(|document| document.source));
        after = page.next;
        if after.is_none() {
            return Ok(sources);
        }
    }
}

async fn is_busy(kb: &KnowledgeBase) -> Result<bool> {
    for status in [TaskStatus::Pending, TaskStatus::Running] {
        if !kb.tasks(Some(status), None, 1).await?.items.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn wait_for(kb: &KnowledgeBase, task: &Task) -> Result<()> {
    let task_id: TaskId = task.task_id;
    loop {
        match kb.task(task_id).await? {
            Some(task) if !task.status.has_ended() => tokio::time::sleep(POLL).await,
            Some(Task { error: Some(error), .. }) => {
                bail!("ingest {}: {}", task.input.source, error.message)
            }
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn documents_of_an_interrupted_run_are_not_ingested_twice() {
        let kb = KnowledgeBase::builder().build().await.unwrap();
        let input = |n: usize| Input {
            title: String::new(),
            source: format!("moons:{n}"),
            text: format!("Moon {n} melts."),
        };
        let Input { title, source, text } = input(0);
        let document = NewDocument { title, source, text, ..NewDocument::default() };
        kb.submit(document, Submission::default()).await.unwrap();
        assert_eq!(import_collection(&kb, (0..3).map(input).collect()).await.unwrap(), 2);
        assert_eq!(kb.stats().await.unwrap().counts.l1, 3);
        assert_eq!(import_collection(&kb, (0..3).map(input).collect()).await.unwrap(), 0);
        let refused = import_collection(&kb, vec![input(1)]).await.unwrap_err();
        assert!(refused.to_string().contains("moons:"), "{refused}");
        assert_eq!(import_missing(&kb, vec![input(1), input(7)]).await.unwrap(), 1);
    }
}
