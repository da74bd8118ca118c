//! The model entries of embedding models whose vectors are still in use. Queries for those vectors use the entry that was
//! in force when the vectors were made, even if the settings have changed since.

use std::collections::BTreeMap;

use lkr_state::{Expect, StateStoreExt, Write, retry_on_conflict};
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, ModelEntry, Result, Settings, Snapshot, records::ModelV1};

/// The key of the record.
pub(crate) const KEY: &str = "settings-embedders";

/// The name of the entry that is stored; its API key is sealed for the place of that entry.
const ENTRY: &str = "embed";

/// The entry of an embedding model whose vectors are still in use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousEmbedder {
    /// The id of the model, as its vectors name it.
    pub id: String,
    /// The entry.
    pub entry: ModelEntry,
    /// The folder of the model, if the entry names no provider.
    pub folder: Option<String>,
    /// The numbers of its vectors that are kept; as many as the folder says if there are none.
    pub dims: Option<usize>,
}

/// Version 1 of the record: entries by model id.
#[derive(Debug, Default, Serialize, Deserialize)]
struct PreviousEmbeddersV1 {
    embedders: BTreeMap<String, PreviousEmbedderV1>,
}

#[derive(Debug, Serialize, Deserialize)]
struct PreviousEmbedderV1 {
    entry: ModelV1,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dims: Option<usize>,
}

impl Settings {
    /// Stores the embedding model's entry of a snapshot as the entry of the model `id`, with the model's folder if the
    /// entry names no provider. Of the entries stored before, only those of `others` stay.
    pub async fn store_previous_embedder(
        &self,
        snapshot: &Snapshot,
        id: &str,
        (folder, dims): (Option<String>, Option<usize>),
        others: &[&str],
    ) -> Result<()> {
        let entry = snapshot.stored.models.get(ENTRY).cloned().unwrap_or_default();
        retry_on_conflict(self.state(), "store previous embedder", || async {
            let record = self.state().get(KEY).await?;
            let before = record.as_ref().map(|record| decode(&record.value)).transpose()?.unwrap_or_default();
            let mut embedders = before.embedders;
            embedders.retain(|stored, _| others.contains(&stored.as_str()));
            let previous = PreviousEmbedderV1 { entry: entry.clone(), folder: folder.clone(), dims };
            embedders.insert(id.to_owned(), previous);
            let after = serde_json::to_vec(&PreviousEmbeddersV1 { embedders });
            let after = after.map_err(|e| Error::internal("write previous embedders", e))?;
            if record.as_ref().is_some_and(|record| record.value == after) {
                return Ok(());
            }
            let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.version));
            Ok(self.state().apply(vec![Write::put(KEY, expect, after)]).await?)
        })
        .await
    }

    /// The stored entries of embedding models.
    pub async fn previous_embedders(&self) -> Result<Vec<PreviousEmbedder>> {
        let Some(record) = self.state().get(KEY).await? else { return Ok(Vec::new()) };
        let previous = |(id, PreviousEmbedderV1 { entry, folder, dims })| PreviousEmbedder {
            id,
            entry: self.resolver().model(ENTRY, &entry),
            folder,
            dims,
        };
        Ok(decode(&record.value)?.embedders.into_iter().map(previous).collect())
    }
}

pub(crate) fn is_readable(value: &[u8]) -> bool {
    decode(value).is_ok()
}

fn decode(bytes: &[u8]) -> Result<PreviousEmbeddersV1> {
    // The cause is left out, because it may quote the record.
    serde_json::from_slice(bytes)
        .map_err(|_| Error::new(ErrorKind::Corrupt, "read previous embedders", "the record is damaged"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lkr_state::MemoryState;

    use super::*;
    use crate::{
        ApiKey, IfMatch, KeyChange, ModelEntryChange, ModelsChange, Plugins, SealingKey, Secret,
        SettingsChange,
    };

    fn plugins() -> Plugins {
        let one = |name: &str| vec![name.to_owned()];
        Plugins { pdf: one("a"), docx: one("a"), html: one("a"), ocr: one("none"), ocr_languages: None }
    }

    async fn set(settings: &Settings, model: &str, key: &str) -> Arc<Snapshot> {
        let embed = ModelEntryChange {
            model: Some(model.to_owned()),
            api_key: KeyChange::Set(Secret::new(key)),
            ..ModelEntryChange::default()
        };
        let models = ModelsChange { embed: Some(embed), ..ModelsChange::default() };
        let change = SettingsChange { models: Some(models), ..SettingsChange::default() };
        settings.update(&change, &IfMatch::Any, Vec::new()).await.unwrap()
    }

    #[tokio::test]
    async fn previous_embedder_is_kept_as_long_as_it_is_listed() {
        let state = Arc::new(MemoryState::new());
        let settings =
            Settings::open(Arc::<MemoryState>::clone(&state), SealingKey::generate(), plugins()).unwrap();
        let first = set(&settings, "first", "sk-planted-1").await;
        settings.store_previous_embedder(&first, "1", (None, None), &[]).await.unwrap();
        let second = set(&settings, "second", "sk-planted-2").await;
        settings
            .store_previous_embedder(&second, "2", (Some("/models".to_owned()), Some(256)), &["1"])
            .await
            .unwrap();
        let previous = settings.previous_embedders().await.unwrap();
        let models: Vec<_> =
            previous.iter().map(|embedder| (embedder.id.as_str(), embedder.entry.model.as_str())).collect();
        assert_eq!(models, [("1", "first"), ("2", "second")]);
        assert_eq!(previous[0].entry.api_key, ApiKey::Set(Secret::new("sk-planted-1")));
        assert_eq!((previous[1].folder.as_deref(), previous[1].dims), (Some("/models"), Some(256)));
        let record = state.get(KEY).await.unwrap().unwrap();
        assert!(!String::from_utf8_lossy(&record.value).contains("planted"), "keys are sealed");
        settings.store_previous_embedder(&second, "2", (None, None), &["3"]).await.unwrap();
        assert_eq!(settings.previous_embedders().await.unwrap().len(), 1, "the first is no longer listed");
    }
}
