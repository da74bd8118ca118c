use std::collections::BTreeSet;

use lkr_domain::{DocId, Document, FilterExpr, Scope, SpaceName, TaskId};
use lkr_state::ScanOrder;

use crate::{
    Catalog, Error, Result, Task, TaskLists, TaskStatus, catalog::read_document, key, merged_ids::MergedIds,
    task_index::TaskGroup, task_record::read_task,
};

/// Which documents a listing shows; an empty filter shows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListFilter {
    /// The category's name.
    pub category: Option<String>,
    /// The exact source.
    pub source: Option<String>,
    /// The beginning of the title, regardless of case.
    pub title_prefix: Option<String>,
    /// An expression over the fields.
    pub filter_expr: Option<FilterExpr>,
}

impl ListFilter {
    /// Whether a listing with this filter shows the document.
    #[must_use]
    pub fn shows(&self, document: &Document) -> bool {
        self.category.as_ref().is_none_or(|category| *category == document.category)
            && self.source.as_ref().is_none_or(|source| *source == document.source)
            && self.title_prefix.as_ref().is_none_or(|prefix| starts_with(&document.title, prefix))
            && self.filter_expr.as_ref().is_none_or(|expr| expr.matches(document))
    }
}

/// The order of a listing, which is that of the ids: by the time at which a document or task was accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ListOrder {
    /// The newest first.
    #[default]
    NewestFirst,
    /// The oldest first.
    OldestFirst,
}

impl ListOrder {
    /// The other order.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::NewestFirst => Self::OldestFirst,
            Self::OldestFirst => Self::NewestFirst,
        }
    }

    /// The order in which keys that end with ids are scanned.
    pub(crate) const fn scan(self) -> ScanOrder {
        match self {
            Self::NewestFirst => ScanOrder::Descending,
            Self::OldestFirst => ScanOrder::Ascending,
        }
    }
}

/// A page of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T, K> {
    /// The items of the page.
    pub items: Vec<T>,
    /// The key of the last item, after which the next page begins; `None` on the last page.
    pub next: Option<K>,
}

/// Records per scan of a listing.
const BATCH: usize = 100;

/// Documents that are counted before they are dropped.
const COUNTED: usize = 1_000;

impl Catalog {
    /// Documents in the scope, the newest first, beyond `after`. Every page but the last has `limit` items.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &ListFilter,
        after: Option<DocId>,
        limit: usize,
    ) -> Result<Page<Document, DocId>> {
        let keep = |document: &Document| filter.shows(document);
        if let Scope::Spaces(spaces) = scope {
            return self.list_spaces(spaces, keep, ListOrder::NewestFirst, after, limit).await;
        }
        let after = after.map(key::document);
        let page = self.page(key::DOCUMENTS, after, limit, decode_document, keep).await?;
        Ok(Page { next: page.next.map(|document| document.doc_id), items: page.items })
    }

    /// The documents of a space in an order, beyond `after`. Every page but the last has `limit` items.
    pub async fn list_space(
        &self,
        space: &SpaceName,
        order: ListOrder,
        after: Option<DocId>,
        limit: usize,
    ) -> Result<Page<Document, DocId>> {
        self.list_spaces(&BTreeSet::from([space.clone()]), |_| true, order, after, limit).await
    }

    /// The documents of some spaces. The indexes of all spaces are read in one state, so a document that moves
    /// between them is in one of them. The record, which is read later, decides in which space a document is: if it
    /// contradicts the index, the document moved in between.
    async fn list_spaces(
        &self,
        spaces: &BTreeSet<SpaceName>,
        keep: impl Fn(&Document) -> bool,
        order: ListOrder,
        after: Option<DocId>,
        limit: usize,
    ) -> Result<Page<Document, DocId>> {
        let is_listed = |document: &Document| spaces.contains(&document.space) && keep(document);
        let is_listed = &is_listed;
        let read = move |ids: Vec<DocId>| async move {
            Ok(self.documents(&ids).await?.into_iter().flatten().filter(is_listed).collect())
        };
        let entries = MergedIds::new(self, order, spaces.iter().map(key::space_documents), after, limit);
        entries.page(read, |document| document.doc_id).await
    }

    /// The number of documents in the scope that the filter shows and that are counted.
    pub async fn count(
        &self,
        scope: &Scope,
        filter: &ListFilter,
        is_counted: impl Fn(&Document) -> bool,
    ) -> Result<u64> {
        let (mut count, mut after) = (0, None);
        loop {
            let page = self.list(scope, filter, after, COUNTED).await?;
            count += page.items.iter().filter(|document| is_counted(document)).count() as u64;
            after = page.next;
            if after.is_none() {
                return Ok(count);
            }
        }
    }

    /// The tasks of `lists` that `keep` accepts, the newest first, beyond `after`. Every page but the last has `limit`
    /// items.
    pub async fn tasks(
        &self,
        lists: &TaskLists,
        keep: impl Fn(&Task) -> bool,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Page<Task, TaskId>> {
        self.tasks_with_status(lists, None, keep, after, limit).await
    }

    /// The same of the tasks with a status, if one is given. It reads no tasks that are done, unless the status is that.
    pub async fn tasks_with_status(
        &self,
        lists: &TaskLists,
        status: Option<TaskStatus>,
        keep: impl Fn(&Task) -> bool,
        after: Option<TaskId>,
        limit: usize,
    ) -> Result<Page<Task, TaskId>> {
        let keep = |task: &Task| status.is_none_or(|status| task.status == status) && keep(task);
        if let Some(prefixes) = lists.prefixes(status.and_then(TaskGroup::of)) {
            let keep = &keep;
            let read = move |ids: Vec<TaskId>| async move {
                Ok(self.tasks_with(&ids).await?.into_iter().filter(keep).collect())
            };
            let entries = MergedIds::new(self, ListOrder::NewestFirst, prefixes, after, limit);
            return entries.page(read, |task| task.task_id).await;
        }
        let after = after.map(key::task);
        let decode = |_: &str, record: &_| read_task(record);
        let page = self.page(key::TASKS, after, limit, decode, keep).await?;
        Ok(Page { next: page.next.map(|task| task.task_id), items: page.items })
    }

    /// Scans until `limit` records match and one more is known to follow.
    async fn page<T: Clone>(
        &self,
        prefix: &str,
        mut after: Option<String>,
        limit: usize,
        decode: impl Fn(&str, &lkr_state::Record) -> Result<T>,
        keep: impl Fn(&T) -> bool,
    ) -> Result<Page<T, T>> {
        let mut items: Vec<T> = Vec::new();
        loop {
            let records = self.state.scan(prefix, after.as_deref(), ScanOrder::Descending, BATCH).await?;
            let last_batch = records.len() < BATCH;
            for (key, record) in &records {
                let item = decode(key, record)?;
                if !keep(&item) {
                    continue;
                }
                if items.len() == limit {
                    return Ok(Page { next: items.last().cloned(), items });
                }
                items.push(item);
            }
            if last_batch {
                return Ok(Page { items, next: None });
            }
            after = records.into_iter().next_back().map(|(key, _)| key);
        }
    }
}

pub(crate) fn decode_document(key: &str, record: &lkr_state::Record) -> Result<Document> {
    let id = key.strip_prefix(key::DOCUMENTS).unwrap_or(key);
    let id = id.parse().map_err(|e| Error::corrupt("read document key", e))?;
    Ok(read_document(id, record)?.value)
}

fn starts_with(title: &str, prefix: &str) -> bool {
    let mut title = title.chars().flat_map(char::to_lowercase);
    prefix.chars().flat_map(char::to_lowercase).all(|character| title.next() == Some(character))
}
