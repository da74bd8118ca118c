//! Ingests a collection into a knowledge base in this process.

use std::{
    collections::HashSet,
    io::{Seek as _, Write as _},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use lkr::{
    Dedup, Document, KnowledgeBase, ListFilter, Metadata, NewDocument, NewFile, Scope, Submission, Task,
    TaskId, TaskLists,
    files::{FilePlugins, FileReader, FileSource, extracted_text},
    stem_and_suffix,
};

use crate::collection::Input;

/// Documents per page of a listing.
pub(crate) const PAGE: usize = 1000;

/// The pause between polls of a task.
const POLL: Duration = Duration::from_millis(20);

/// How documents enter a knowledge base.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ImportAs<'a> {
    /// As texts with the titles of the collection.
    Texts,
    /// As Markdown files that this reader reads. Their titles are their file names, like those of uploads.
    MarkdownFiles(&'a FileReader),
}

impl ImportAs<'_> {
    /// Fails if a stored document did not enter the knowledge base like this.
    fn check(self, document: &Document) -> Result<()> {
        let source = &document.source;
        match (self, document.original.is_some()) {
            (Self::Texts, true) => bail!("the knowledge base contains {source:?} as a file, not as a text"),
            (Self::MarkdownFiles(_), false) => {
                bail!("the knowledge base contains {source:?} as a text, not as a file")
            }
            (Self::Texts, false) | (Self::MarkdownFiles(_), true) => Ok(()),
        }
    }
}

/// Ingests the documents that are not stored yet, including duplicates, and returns their number. Fails if the
/// knowledge base contains other documents, or some that entered it in another way.
pub(crate) async fn import_collection(
    kb: &KnowledgeBase,
    inputs: Vec<Input>,
    import_as: ImportAs<'_>,
) -> Result<usize> {
    let mut stored = HashSet::new();
    each_document(kb, |document| {
        import_as.check(&document)?;
        stored.insert(document.source);
        Ok(())
    })
    .await?;
    let expected: HashSet<&str> = inputs.iter().map(|input| input.source.as_str()).collect();
    refuse_others(stored.iter().map(String::as_str), |source| expected.contains(source))?;
    ingest_missing(kb, inputs, &stored, import_as).await
}

/// Fails if a source is stored that is not expected.
pub(crate) fn refuse_others<'s>(
    mut stored: impl Iterator<Item = &'s str>,
    is_expected: impl Fn(&str) -> bool,
) -> Result<()> {
    match stored.find(|source| !is_expected(source)) {
        Some(other) => bail!("the knowledge base contains {other:?}, which is not in this collection"),
        None => Ok(()),
    }
}

/// Ingests the documents whose sources are not `stored` yet, whatever else the knowledge base contains, and adds their sources.
pub(crate) async fn import_missing(
    kb: &KnowledgeBase,
    inputs: Vec<Input>,
    stored: &mut HashSet<String>,
) -> Result<usize> {
    let sources: Vec<String> = inputs.iter().map(|input| input.source.clone()).collect();
    let count = ingest_missing(kb, inputs, stored, ImportAs::Texts).await?;
    stored.extend(sources);
    Ok(count)
}

/// Ingests the documents whose sources are not stored yet, all by the same submission.
pub(crate) async fn import_new(
    kb: &KnowledgeBase,
    documents: Vec<NewDocument>,
    submission: &Submission,
) -> Result<()> {
    let stored = sources(kb).await?;
    let missing = documents.into_iter().filter(|document| !stored.contains(&document.source));
    let submit = async |document| Ok(kb.submit(document, submission.clone()).await?);
    ingest_each(kb, missing, submit).await.map(drop)
}

async fn ingest_missing(
    kb: &KnowledgeBase,
    inputs: Vec<Input>,
    stored: &HashSet<String>,
    import_as: ImportAs<'_>,
) -> Result<usize> {
    let missing = inputs.into_iter().filter(|input| !stored.contains(&input.source));
    let submit = async |input| match import_as {
        ImportAs::Texts => submit_text(kb, input).await,
        ImportAs::MarkdownFiles(reader) => submit_file(kb, reader, input).await,
    };
    ingest_each(kb, missing, submit).await
}

/// Submits all, waits until each is ingested, and returns their number.
async fn ingest_each<T>(
    kb: &KnowledgeBase,
    items: impl Iterator<Item = T>,
    submit: impl AsyncFn(T) -> Result<Task>,
) -> Result<usize> {
    let mut tasks = Vec::new();
    for item in items {
        tasks.push(submit(item).await?);
    }
    for task in &tasks {
        wait_for(kb, task).await?;
    }
    Ok(tasks.len())
}

async fn submit_text(kb: &KnowledgeBase, Input { title, source, text }: Input) -> Result<Task> {
    let context = format!("add {source}");
    let document = NewDocument { title, source, text, ..NewDocument::default() };
    kb.submit(document, with_duplicates()).await.context(context)
}

async fn submit_file(kb: &KnowledgeBase, reader: &FileReader, input: Input) -> Result<Task> {
    let Input { source, text, .. } = input;
    let file_name = file_name(&source);
    let mut file = tempfile::tempfile_in(reader.spool()).context("create a temporary file")?;
    file.write_all(text.as_bytes()).and_then(|()| file.rewind()).context("write a temporary file")?;
    let size_bytes = text.len() as u64;
    let read = FileSource {
        file_name: file_name.clone(),
        media_type: None,
        file: file.try_clone().context("open a temporary file")?,
        length: size_bytes,
    };
    let extracted = reader.read(read, &FilePlugins::default()).await;
    let extracted = extracted.map_err(|error| anyhow!("read {source}: {}", error.reason()))?;
    let (title, extracted) = (stem_and_suffix(&file_name).0.to_owned(), extracted_text(extracted));
    let context = format!("add {source}");
    let file = NewFile { file_name, file, size_bytes, extracted, title, source, metadata: Metadata::new() };
    kb.submit_file(file, with_duplicates()).await.context(context)
}

/// A submission that also accepts duplicates.
pub(crate) fn with_duplicates() -> Submission {
    Submission { dedup: Dedup::None, ..Submission::default() }
}

/// The name of the Markdown file of a document: the last part of its id, which follows the collection's name in its
/// source.
fn file_name(source: &str) -> String {
    let id = source.split_once(':').map_or(source, |(_, id)| id);
    let last = id.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let stem = last.strip_suffix(".md").unwrap_or(last);
    format!("{}.md", if stem.is_empty() { "document" } else { stem })
}

/// The sources of all documents. Waits first for the documents that an interrupted run left unfinished. Reads all documents and
/// tasks.
pub(crate) async fn sources(kb: &KnowledgeBase) -> Result<HashSet<String>> {
    let mut sources = HashSet::new();
    each_document(kb, |document| {
        sources.insert(document.source);
        Ok(())
    })
    .await?;
    Ok(sources)
}

async fn each_document(kb: &KnowledgeBase, mut visit: impl FnMut(Document) -> Result<()>) -> Result<()> {
    while is_busy(kb).await? {
        tokio::time::sleep(POLL).await;
    }
    let mut after = None;
    loop {
        let page = kb.list(&Scope::All, &ListFilter::default(), after, PAGE).await?;
        page.items.into_iter().try_for_each(&mut visit)?;
        after = page.next;
        if after.is_none() {
            return Ok(());
        }
    }
}

async fn is_busy(kb: &KnowledgeBase) -> Result<bool> {
    Ok(!kb.tasks(&TaskLists::All, |task| !task.status.has_ended(), None, 1).await?.items.is_empty())
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
        assert_eq!(import_collection(&kb, (0..3).map(input).collect(), ImportAs::Texts).await.unwrap(), 2);
        assert_eq!(kb.stats(&Scope::All).await.unwrap().counts.l1, 3);
        assert_eq!(import_collection(&kb, (0..3).map(input).collect(), ImportAs::Texts).await.unwrap(), 0);
        let refused = import_collection(&kb, vec![input(1)], ImportAs::Texts).await.unwrap_err();
        assert!(refused.to_string().contains("moons:"), "{refused}");
        let mut stored = sources(&kb).await.unwrap();
        for added in [1, 0] {
            assert_eq!(import_missing(&kb, vec![input(1), input(7)], &mut stored).await.unwrap(), added);
        }
    }

    #[tokio::test]
    async fn markdown_file_is_titled_by_its_name_and_found_by_its_heading() {
        let folder = tempfile::tempdir().unwrap();
        let reader =
            FileReader::in_process(folder.path().to_owned(), lkr::files::FileTools::default()).unwrap();
        let kb = KnowledgeBase::builder().build().await.unwrap();
        let (source, text) = ("zoo:animals/simple.md".to_owned(), "# My zebra\n\nIt rests.".to_owned());
        let inputs = vec![Input { title: "Animals".to_owned(), source: source.clone(), text: text.clone() }];
        let files = ImportAs::MarkdownFiles(&reader);
        assert_eq!(import_collection(&kb, inputs.clone(), files).await.unwrap(), 1);
        let again = inputs.clone();
        assert_eq!(import_collection(&kb, inputs, files).await.unwrap(), 0);
        let document = kb.list(&Scope::All, &ListFilter::default(), None, 2).await.unwrap().items.remove(0);
        assert_eq!((document.title.as_str(), document.source), ("simple", source.clone()));
        assert_eq!(kb.text(document.doc_id).await.unwrap().unwrap(), text);
        let found = kb.search(&lkr::SearchRequest::new("zebra")).await.unwrap();
        assert_eq!(found.response.results[0].path, ["My zebra"]);
        let refused = import_collection(&kb, again, ImportAs::Texts).await.unwrap_err().to_string();
        assert!(refused.contains(&source) && refused.contains("as a file"), "{refused}");
    }

    #[test]
    fn file_name_is_the_last_part_of_the_id() {
        for (source, expected) in [
            ("handbook:about/_index.md", "_index.md"),
            ("docs:https://docs.example/en/welcome", "welcome.md"),
            ("docs:https://docs.example/", "docs.example.md"),
            ("moons:7", "7.md"),
            ("moons:", "document.md"),
        ] {
            assert_eq!(file_name(source), expected, "{source}");
        }
    }
}
