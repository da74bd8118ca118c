//! Responses of the embedding model.

use futures_util::FutureExt;
use lkr_models::{EmbedKind, Embedder, MemoryEmbedder};
use serde_json::{Value, json};

use crate::{
    fault::Fault,
    http::Answer,
    provider::{ProviderBehavior, with_fault},
};

/// The error of a valid request that this provider does not support: its status, message and code.
pub(crate) fn refusal(behavior: &ProviderBehavior, body: &Value) -> Option<(u16, String, &'static str)> {
    let texts = texts(body);
    if texts.len() > behavior.most_texts {
        let message =
            format!("batch size {} > maximum allowed batch size {}", texts.len(), behavior.most_texts);
        return Some((413, message, "batch"));
    }
    let longest = texts.iter().map(|text| text.split_whitespace().count()).max().unwrap_or(0);
    let message =
        format!("`inputs` must have less than {} tokens. Given: {longest}", behavior.most_text_tokens);
    (longest > behavior.most_text_tokens).then_some((400, message, "too_long"))
}

pub(crate) fn answer(body: &Value, fault: Option<&Fault>, behavior: &ProviderBehavior) -> Answer {
    let dims = if let Some(Fault::WrongDims(dims)) = fault { *dims } else { behavior.dims };
    let embedded = MemoryEmbedder::with_dims(dims).embed(EmbedKind::Passage, &texts(body)).now_or_never();
    let vectors = embedded.and_then(Result::ok).unwrap_or_default();
    // Vectors of length 3: clients have to normalise them.
    let scaled = |vector: &Vec<f32>| vector.iter().map(|value| f64::from(*value) * 3.0).collect::<Vec<_>>();
    let row = |(index, vector): (usize, &Vec<f32>)| json!({ "object": "embedding", "index": index, "embedding": scaled(vector) });
    let mut rows: Vec<Value> = vectors.iter().enumerate().map(row).collect();
    match fault {
        Some(Fault::MissingVector) => drop(rows.pop()),
        Some(Fault::RepeatedIndex) => {
            rows.iter_mut().next_back().into_iter().for_each(|row| row["index"] = json!(0));
        }
        Some(Fault::NotFinite) => rows.iter_mut().for_each(|row| row["embedding"][0] = json!(1e300)),
        Some(Fault::Zero) => rows.iter_mut().for_each(|row| row["embedding"] = json!(vec![0; dims])),
        Some(Fault::Shuffled) => rows.reverse(),
        Some(Fault::ZeroIndexOmitted) => {
            rows.iter_mut()
                .take(1)
                .filter_map(Value::as_object_mut)
                .for_each(|row| drop(row.remove("index")));
        }
        _ => {}
    }
    let mut answer = json!({
        "object": "list", "model": body["model"], "data": rows,
        "usage": { "prompt_tokens": 1, "total_tokens": 1 },
    });
    if let Some(Fault::ErrorWithin(message)) = fault {
        answer = json!({ "error": { "message": message, "code": 502 } });
    }
    with_fault(Answer::json(200, &answer), fault)
}

fn texts(body: &Value) -> Vec<String> {
    let text = |text: &Value| text.as_str().unwrap_or_default().to_owned();
    body["input"].as_array().map_or_else(|| vec![text(&body["input"])], |all| all.iter().map(text).collect())
}
