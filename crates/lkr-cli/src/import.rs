//! Bringing a collection into a knowledge base in this process.

use std::{collections::HashSet, time::Duration};

use anyhow::{Result, bail};
use lkr::{Dedup, KnowledgeBase, ListFilter, NewDocument, Submission, Task, TaskId, TaskStatus};

use crate::collection::Input;

/// How many documents are listed at a time.
const PAGE: usize = 1000;

/// How often a task is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Brings in what is not there yet, equal texts included, and answers how many that were. Refused where the knowledge
/// base holds anything else.
pub(crate) async fn import_collection(kb: &KnowledgeBase, inputs: Vec<Input>) -> Result<usize> {
    let there = sources(kb).await?;
    let wanted: HashSet<&str> = inputs.iter().map(|input| input.source.as_str()).collect();
    if let Some(other) = there.iter().find(|source| !wanted.contains(source.as_str())) {
        bail!("the knowledge base holds {other}, which is not of this collection");
    }
    bring_in(kb, inputs, &there).await
}

/// The same, whatever else is there.
pub(crate) async fn import_missing(kb: &KnowledgeBase, inputs: Vec<Input>) -> Result<usize> {
    let there = sources(kb).await?;
    bring_in(kb, inputs, &there).await
}

async fn bring_in(kb: &KnowledgeBase, inputs: Vec<Input>, there: &HashSet<String>) -> Result<usize> {
    let mut tasks = Vec::new();
    for Input { title, source, text } in inputs {
        if there.contains(&source) {
            continue;
        }
        let document = NewDocument { title, source, text, ..NewDocument::default() };
        let submission = Submission { dedup: Dedup::None, ..Submission::default() };
        tasks.push(kb.submit(document, submission).await?);
    }
    for task in &tasks {
        end_of(kb, task).await?;
    }
    Ok(tasks.len())
}

/// The sources of all documents, those included that an earlier run was cut off at: they are waited for.
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

async fn end_of(kb: &KnowledgeBase, task: &Task) -> Result<()> {
    let task_id: TaskId = task.task_id;
    loop {
        match kb.task(task_id).await? {
            Some(task) if !task.status.has_ended() => tokio::time::sleep(POLL).await,
            Some(Task { error: Some(error), .. }) => {
                bail!("bring in {}: {}", task.input.source, error.message)
            }
            _ => return Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_an_earlier_run_was_cut_off_at_is_not_brought_in_twice() {
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
