//! The knowledge bases that `lkr bench spaces` compares.

use std::{path::Path, sync::Arc};

use anyhow::{Context, Result, bail};
use lkr::{Metadata, NewDocument, Scope, SpaceName, Submission, ports::Embedder};
use time::{Date, Duration, macros::date};

use crate::{
    bench::copies::Copies,
    collection::Input,
    import::{import_new, with_duplicates},
    local_kb::{LocalKnowledgeBase, require_sources},
};

/// The metadata key of the date that each document has.
pub(super) const DATE_KEY: &str = "date";

/// The date of the first document. Each later one is a day younger.
const FIRST_DATE: Date = date!(2000 - 01 - 01);

/// The names of their folders.
const NAMES: [&str; 3] = ["many", "one", "alone"];

/// Knowledge bases with copies of the same documents.
#[derive(Debug)]
pub(super) struct SpaceBases {
    /// Copy `n` is in space `n`. One copy more is in a space that no search reads.
    pub(super) many: LocalKnowledgeBase,
    /// All copies are in the default space.
    pub(super) one: LocalKnowledgeBase,
    /// One of the spaces of `many`, alone.
    pub(super) alone: LocalKnowledgeBase,
    /// The spaces of `many` that searches read.
    spaces: Vec<SpaceName>,
    /// The number of documents in a space.
    documents: usize,
}

impl SpaceBases {
    /// Opens the bases below `data_dir` and adds the documents that they lack: copies to `many` and `one` in turns, so
    /// that the background work of both is equally far at the end.
    pub(super) async fn build(
        data_dir: &Path,
        embedder: &Arc<dyn Embedder>,
        documents: &Copies,
        spaces: usize,
    ) -> Result<Self> {
        require_own(data_dir)?;
        let open = async |name: &str| {
            let folder = data_dir.join(name);
            require_sources(&folder, documents.sources()).await?;
            LocalKnowledgeBase::open(&folder, Some(Arc::clone(embedder))).await
        };
        let [many, one, alone] = NAMES;
        let (many, one, alone) = (open(many).await?, open(one).await?, open(alone).await?);
        let spaces: Vec<SpaceName> =
            (0..spaces).map(|n| space(&format!("space-{n}"))).collect::<Result<_>>()?;
        let bases = Self { many, one, alone, spaces, documents: documents.count() };
        let copies = |n: usize| (n * documents.count()..).zip(documents.copy(n));
        for (n, name) in bases.spaces.iter().enumerate() {
            import(&bases.many, name, copies(n)).await?;
            import(&bases.one, &SpaceName::default(), copies(n)).await?;
        }
        import(&bases.many, &space("hidden")?, copies(bases.spaces.len())).await?;
        import(&bases.alone, bases.measured()?, copies(bases.spaces.len() / 2)).await?;
        Ok(bases)
    }

    /// The space of `alone`.
    pub(super) fn measured(&self) -> Result<&SpaceName> {
        self.spaces.get(self.spaces.len() / 2).context("there must be at least one space")
    }

    /// All spaces of `many` but the one that no search reads.
    pub(super) fn all(&self) -> Scope {
        self.spaces.iter().cloned().collect()
    }

    /// The date from which on one in `share` documents of `one` is.
    pub(super) fn date_of_last(&self, share: usize) -> Result<String> {
        let documents = self.documents * self.spaces.len();
        date_of(documents - (documents / share).max(1))
    }

    /// Ends the background work of all bases.
    pub(super) async fn close(self) {
        for base in [self.many, self.one, self.alone] {
            base.kb.close().await;
        }
    }
}

/// Fails if a folder contains anything but the knowledge bases of an earlier run.
fn require_own(data_dir: &Path) -> Result<()> {
    let names = data_dir.read_dir().into_iter().flatten().flatten().map(|entry| entry.file_name());
    match names.into_iter().find(|name| NAMES.iter().all(|own| name != own)) {
        Some(other) => {
            bail!("{} contains {}, which is not of this benchmark", data_dir.display(), other.display())
        }
        None => Ok(()),
    }
}

fn space(name: &str) -> Result<SpaceName> {
    SpaceName::new(name).with_context(|| format!("{name} is no name of a space"))
}

fn date_of(number: usize) -> Result<String> {
    let age = Duration::days(i64::try_from(number)?);
    Ok(FIRST_DATE.checked_add(age).context("too many documents for a calendar")?.to_string())
}

/// Adds the documents that the base lacks to a space.
async fn import(
    base: &LocalKnowledgeBase,
    space: &SpaceName,
    inputs: impl Iterator<Item = (usize, Input)>,
) -> Result<()> {
    let documents = inputs.map(|(number, Input { title, source, text })| {
        let metadata = Metadata::from([(DATE_KEY.to_owned(), date_of(number)?)]);
        Ok(NewDocument { title, source, text, metadata })
    });
    let submission = Submission { space: space.clone(), ..with_duplicates() };
    import_new(&base.kb, documents.collect::<Result<_>>()?, &submission).await
}

#[cfg(test)]
mod tests {
    use lkr_models::MemoryEmbedder;

    use super::*;

    #[tokio::test]
    async fn bases_contain_the_same_documents_and_are_reused() {
        let folder = tempfile::tempdir().unwrap();
        let embedder: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::new());
        let input = |moon: &str| Input {
            title: moon.into(),
            source: moon.into(),
            text: format!("{moon} is a moon."),
        };
        let documents = Copies::of(["Io", "Europa"].map(input).into());
        for _ in 0..2 {
            let bases = SpaceBases::build(folder.path(), &embedder, &documents, 3).await.unwrap();
            let documents = async |base: &LocalKnowledgeBase, scope: &Scope| {
                base.kb.stats(scope).await.unwrap().counts.l1
            };
            assert_eq!(documents(&bases.many, &Scope::All).await, 8);
            assert_eq!(documents(&bases.many, &bases.all()).await, 6);
            assert_eq!(documents(&bases.one, &Scope::All).await, 6);
            let measured = Scope::of(bases.measured().unwrap().clone());
            assert_eq!(documents(&bases.alone, &Scope::All).await, 2);
            assert_eq!(documents(&bases.alone, &measured).await, 2);
            assert_eq!(bases.date_of_last(3).unwrap(), "2000-01-05");
            bases.close().await;
        }
        std::fs::create_dir(folder.path().join("store")).unwrap();
        let refused =
            SpaceBases::build(folder.path(), &embedder, &documents, 3).await.map(|_| ()).unwrap_err();
        assert!(
            refused.to_string().ends_with(" contains store, which is not of this benchmark"),
            "{refused}"
        );
    }
}
