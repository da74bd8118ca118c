//! Checks a live document against its record.

use lkr_domain::Document;
use lkr_parsers::decode_blocks;
use tokio::task::spawn_blocking;

use crate::{checker::Checker, repair::RepairAction};

impl Checker<'_> {
    pub(crate) async fn check_document(&mut self, document: &Document) {
        if self.superseded.contains(&document.doc_id) {
            return;
        }
        self.report.documents += 1;
        self.report.counts += document.counts;
        self.check_space(&document.space).await;
        match self.ports.catalog.is_indexed(document).await {
            Ok(true) => {}
            Ok(false) => {
                let what = format!("document {} is not in the indexes", document.doc_id);
                self.report_finding(
                    what,
                    Some(&document.title),
                    RepairAction::AddToTextIndexes(Box::new(document.clone())),
                )
                .await;
            }
            Err(error) => {
                let what = format!("the text index entries of document {}", document.doc_id);
                self.report_unchecked(what, error).await;
            }
        }
        let original = self.problem_of_original(document).await;
        let text = self.check_text(document, original.is_none()).await;
        if let Some(problem) = original {
            self.report_original(document, problem, text.is_some()).await;
        }
        self.check_points(document, text.as_deref()).await;
    }

    /// Checks the text, its blocks and its fingerprint. Returns the text if it is undamaged. `has_original` tells whether the original
    /// is undamaged, if there is one.
    async fn check_text(&mut self, document: &Document, has_original: bool) -> Option<String> {
        let (doc_id, title) = (document.doc_id, Some(document.title.as_str()));
        let sha256 = Some(document.content_sha256.as_str()).filter(|sha256| !sha256.is_empty());
        let text = match self.ports.texts.get(doc_id, document.revision, sha256).await {
            Ok(text) => text,
            Err(error) => {
                let what = format!("the text of document {doc_id} cannot be read: {error}");
                let remedy = match document.original {
                    Some(_) if has_original => "replace the document with its original, which is kept",
                    Some(_) => "replace the document with its file",
                    None => "replace the document with its text",
                };
                self.report_finding(what, title, RepairAction::Unrepairable(remedy)).await;
                return None;
            }
        };
        if !matches!(self.ports.texts.has_blocks(doc_id, document.revision).await, Ok(false)) {
            let blocks = self.ports.texts.blocks(doc_id, document.revision, None).await;
            if blocks.is_ok_and(|blocks| decode_blocks(&blocks, &text).is_err()) {
                let what = format!("the blocks of document {doc_id} do not match its text");
                self.report_finding(what, title, RepairAction::DeleteBlocks(doc_id, document.revision)).await;
            }
        }
        self.check_fingerprint(document, text).await
    }

    async fn check_fingerprint(&mut self, document: &Document, text: String) -> Option<String> {
        let (text, computed) = spawn_blocking(move || {
            let computed = lkr_ingest::fingerprint(&text);
            (text, computed)
        })
        .await
        .ok()?;
        if document.fingerprint.as_ref().is_some_and(|fingerprint| *fingerprint != computed) {
            let what = format!("the fingerprint of document {} does not match its text", document.doc_id);
            let repair = RepairAction::Fingerprint(Box::new(document.clone()), computed);
            self.report_finding(what, Some(&document.title), repair).await;
        }
        Some(text)
    }

    /// What is wrong with the original; `None` if there is none, or it is undamaged.
    async fn problem_of_original(&self, document: &Document) -> Option<&'static str> {
        let original = document.original.as_ref()?;
        let read = async {
            let stored = self.ports.originals.get(&original.path).await?;
            let Some(stored) = stored else { return Ok(Some("is missing")) };
            if stored.size_bytes != original.size_bytes {
                return Ok(Some("has the wrong length"));
            }
            let checked = stored.check(original.sha256.as_deref()).await;
            Ok::<_, lkr_catalog::Error>(checked.is_err().then_some("is damaged"))
        };
        read.await.unwrap_or(Some("cannot be read"))
    }

    async fn report_original(&mut self, document: &Document, problem: &str, has_text: bool) {
        let Some(original) = &document.original else { return };
        let what = format!("the original {} of document {} {problem}", original.path, document.doc_id);
        let remedy = match has_text {
            true => "its text and points are intact; upload the file again to restore it",
            false => "replace the document with its file",
        };
        self.report_finding(what, Some(&document.title), RepairAction::Unrepairable(remedy)).await;
    }
}
