//! The specification of a collection, as metadata that is created together with it.

use std::collections::HashMap;

use lkr_vectors::{Collection, CollectionSpec, DenseSpec};
use qdrant_client::qdrant::Value;

use crate::{
    names::Names,
    value::{self, Fields},
};

/// The key of the metadata.
const KEY: &str = "lkr";
/// The version of the stored form of points and metadata.
const FORMAT: i64 = 1;

pub(crate) fn encode(spec: &CollectionSpec, names: &Names) -> HashMap<String, Value> {
    let mut fields = Fields::from([
        ("format".to_owned(), value::integer(FORMAT)),
        ("prefix".to_owned(), value::text(names.prefix())),
        ("collection".to_owned(), value::text(spec.collection.name())),
    ]);
    if let Some(DenseSpec { model, dims }) = &spec.dense {
        fields.insert("model".to_owned(), value::text(model));
        fields.insert("dims".to_owned(), value::integer(i64::try_from(*dims).unwrap_or(i64::MAX)));
    }
    HashMap::from([(KEY.to_owned(), value::object(fields))])
}

/// The specification; `None` if the collection was not made by a store with this prefix.
pub(crate) fn decode(metadata: &HashMap<String, Value>, names: &Names) -> Option<CollectionSpec> {
    let fields = value::as_object(metadata.get(KEY)?)?;
    let text = |name: &str| fields.get(name).and_then(value::as_text);
    let integer = |name: &str| fields.get(name).and_then(value::as_integer);
    if integer("format") != Some(FORMAT) || text("prefix") != Some(names.prefix()) {
        return None;
    }
    let dense = match text("model") {
        None => None,
        Some(model) => {
            let dims = integer("dims").and_then(|dims| usize::try_from(dims).ok())?;
            Some(DenseSpec { model: model.to_owned(), dims })
        }
    };
    Some(CollectionSpec { collection: Collection::new(text("collection")?)?, dense })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifications_read_back_under_their_own_prefix_only() {
        let names = Names::new("a_");
        for dense in [None, Some(DenseSpec { model: "m/1".to_owned(), dims: 384 })] {
            let spec = CollectionSpec { collection: Collection::new("l1.x").unwrap(), dense };
            let metadata = encode(&spec, &names);
            assert_eq!(decode(&metadata, &names), Some(spec));
            assert_eq!(decode(&metadata, &Names::new("a")), None);
        }
        assert_eq!(decode(&HashMap::new(), &names), None);
    }
}
