//! Entries of embedding models that were in force when documents got their vectors: as long as these are in use, the
//! model is asked as it was then, whatever the settings say by now.

use std::collections::BTreeMap;

use lkr_state::{Expect, StateStoreExt, Write};
use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, ModelEntry, Result, Settings, Snapshot, records::ModelV1};

/// The one record.
pub(crate) const KEY: &str = "settings-embedders";

/// The entry that is kept; its key is sealed for the same place.
const ENTRY: &str = "embed";

/// How often a change is tried anew that one of another process overtook.
const TRIES: usize = 32;

/// The entry of an embedding model as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreviousEmbedder {
    /// The id of the model: that of its vectors.
    pub id: String,
    /// The entry.
    pub entry: ModelEntry,
    /// The folder of the model, where the entry names no provider.
    pub folder: Option<String>,
}

/// Version 1 of the record, by the ids of models.
#[derive(Debug, Default, Serialize, Deserialize)]
struct KeptV1 {
    embedders: BTreeMap<String, OneV1>,
}

#[derive(Debug, Serialize, Deserialize)]
struct OneV1 {
    entry: ModelV1,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
}

impl Settings {
    /// Keeps the entry of the embedding model, as it stands in a snapshot, as that of the model `id`, with the folder that
    /// the model lies in where it names no provider. Of those kept before, the ones of the models `others` stay.
    pub async fn keep_embedder(
        &self,
        snapshot: &Snapshot,
        id: &str,
        folder: Option<String>,
        others: &[&str],
    ) -> Result<()> {
        let entry = snapshot.stored.models.get(ENTRY).cloned().unwrap_or_default();
        for _ in 0..TRIES {
            let record = self.state().get(KEY).await?;
            let before = record.as_ref().map(|record| decode(&record.value)).transpose()?.unwrap_or_default();
            let mut embedders = before.embedders;
            embedders.retain(|kept, _| others.contains(&kept.as_str()));
            embedders.insert(id.to_owned(), OneV1 { entry: entry.clone(), folder: folder.clone() });
            let after = serde_json::to_vec(&KeptV1 { embedders });
            let after = after.map_err(|e| Error::internal("write kept embedders", e))?;
            if record.as_ref().is_some_and(|record| record.value == after) {
                return Ok(());
            }
            let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.version));
            match self.state().apply(vec![Write::put(KEY, expect, after)]).await {
                Err(error) if error.kind() == lkr_state::ErrorKind::Conflict => {}
                done => return Ok(done?),
            }
        }
        Err(Error::new(ErrorKind::Unavailable, "keep embedder", "it keeps being changed elsewhere"))
    }

    /// The entries of embedding models that are kept.
    pub async fn kept_embedders(&self) -> Result<Vec<PreviousEmbedder>> {
        let Some(record) = self.state().get(KEY).await? else { return Ok(Vec::new()) };
        let kept = |(id, OneV1 { entry, folder })| PreviousEmbedder {
            id,
            entry: self.resolver().model(ENTRY, &entry),
            folder,
        };
        Ok(decode(&record.value)?.embedders.into_iter().map(kept).collect())
    }
}

pub(crate) fn is_readable(value: &[u8]) -> bool {
    decode(value).is_ok()
}

fn decode(bytes: &[u8]) -> Result<KeptV1> {
    // The source of the error is left out: it may quote the record.
    serde_json::from_slice(bytes)
        .map_err(|_| Error::new(ErrorKind::Corrupt, "read kept embedders", "the record is damaged"))
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
    async fn an_entry_outlives_its_settings_as_long_as_it_is_wanted() {
        let state = Arc::new(MemoryState::new());
        let settings =
            Settings::open(Arc::<MemoryState>::clone(&state), SealingKey::generate(), plugins()).unwrap();
        let first = set(&settings, "first", "sk-planted-1").await;
        settings.keep_embedder(&first, "1", None, &[]).await.unwrap();
        let second = set(&settings, "second", "sk-planted-2").await;
        settings.keep_embedder(&second, "2", Some("/models".to_owned()), &["1"]).await.unwrap();
        let kept = settings.kept_embedders().await.unwrap();
        let models: Vec<_> = kept.iter().map(|kept| (kept.id.as_str(), kept.entry.model.as_str())).collect();
        assert_eq!(models, [("1", "first"), ("2", "second")]);
        assert_eq!(kept[0].entry.api_key, ApiKey::Set(Secret::new("sk-planted-1")));
        assert_eq!(kept[1].folder.as_deref(), Some("/models"));
        let record = state.get(KEY).await.unwrap().unwrap();
        assert!(!String::from_utf8_lossy(&record.value).contains("planted"), "keys are sealed");
        settings.keep_embedder(&second, "2", None, &["3"]).await.unwrap();
        assert_eq!(settings.kept_embedders().await.unwrap().len(), 1, "nobody wants the first any more");
    }
}
