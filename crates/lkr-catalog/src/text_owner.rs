//! Which knowledge base the texts on a blob store belong to. Texts to which no record refers are removed as left over, so the
//! texts of another knowledge base must not be taken for such.

use lkr_domain::{Document, Scope};
use lkr_state::{Expect, StateStoreExt, Write};
use uuid::Uuid;

use crate::{Catalog, Error, ListFilter, Result, Texts, key};

/// The documents that are asked whether their texts are there.
const ASKED: usize = 10;

/// Whose texts are on a blob store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextOwner {
    /// Those of this knowledge base, or there are none.
    This,
    /// Those of another one.
    Other,
    /// There are texts, but none of this knowledge base's documents, and nobody has claimed them.
    Unknown,
    /// There are no texts at all, but this knowledge base has documents: a disk that is not mounted, for example.
    Missing,
}

impl Catalog {
    /// Claims the texts for this knowledge base, unless they are another one's.
    ///
    /// Both have the id of the knowledge base: in its records, and in an object beside the texts. If one of them lacks it, as after a
    /// migration, a restore or an update from a version without ids, the texts are this knowledge base's if one of its documents has
    /// its text there, or if there are none, neither texts nor documents, and nobody claimed the place. An empty object lets a place
    /// without texts be claimed for documents whose texts are lost.
    ///
    /// # Errors
    /// Those of the state store and of the blob store.
    pub async fn claim_texts(&self, texts: &Texts) -> Result<TextOwner> {
        let (own, owner) = (self.knowledge_base_id().await?, texts.owner().await?);
        match (own, &owner) {
            (Some(own), Some(owner)) if own.to_string() == *owner => return Ok(TextOwner::This),
            (Some(_), Some(owner)) if !owner.is_empty() => return Ok(TextOwner::Other),
            _ => {}
        }
        let is_given_up = owner.as_ref().is_some_and(String::is_empty);
        if !is_given_up {
            let newest = self.list(&Scope::All, &ListFilter::default(), None, ASKED).await?.items;
            let is_empty = owner.is_none() && texts.is_empty().await?;
            let is_new = is_empty && newest.is_empty();
            if !is_new && !has_text_of(texts, &newest).await? {
                return Ok(match owner {
                    Some(_) => TextOwner::Other,
                    None if is_empty => TextOwner::Missing,
                    None => TextOwner::Unknown,
                });
            }
        }
        let own = match own {
            Some(own) => own,
            None => self.new_knowledge_base_id().await?,
        };
        texts.set_owner(&own.to_string()).await?;
        Ok(TextOwner::This)
    }

    async fn knowledge_base_id(&self) -> Result<Option<Uuid>> {
        let Some(record) = self.state.get(key::KNOWLEDGE_BASE).await? else { return Ok(None) };
        let id = String::from_utf8_lossy(&record.value).parse();
        id.map(Some).map_err(|error| Error::corrupt("read the id of the knowledge base", error))
    }

    /// Gives the knowledge base an id, unless another process does so at the same time; returns what it has then.
    async fn new_knowledge_base_id(&self) -> Result<Uuid> {
        let id = Uuid::new_v4();
        let write = Write::put(key::KNOWLEDGE_BASE, Expect::Absent, id.to_string());
        match self.state.apply(vec![write]).await {
            Err(error) if error.kind() == lkr_state::ErrorKind::Conflict => {
                Ok(self.knowledge_base_id().await?.unwrap_or(id))
            }
            written => Ok(written.map(|_| id)?),
        }
    }
}

/// Whether one of the documents has its text there.
async fn has_text_of(texts: &Texts, documents: &[Document]) -> Result<bool> {
    for document in documents {
        if texts.has(document.doc_id, document.revision).await? {
            return Ok(true);
        }
    }
    Ok(false)
}
