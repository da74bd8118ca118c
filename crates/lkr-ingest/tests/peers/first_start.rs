//! Processes whose models differ start on stores that are empty.

use lkr_vectors::FailingVectors;

use super::{
    stalls::{Gate, OpenAtEnd},
    *,
};

/// The model of the collections of each layer.
async fn live_models(stores: &Stores) -> BTreeSet<Option<String>> {
    let mut models = BTreeSet::new();
    for layer in Layer::ALL {
        let spec = stores.vectors.describe(&layer.into()).await.unwrap().unwrap();
        models.insert(spec.dense.map(|dense| dense.model));
    }
    models
}

fn only(model: &str) -> BTreeSet<Option<String>> {
    BTreeSet::from([Some(model.to_owned())])
}

/// A process stops in the middle of creating its collections, and another one with another model opens the same stores.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn first_process_decides_the_model_of_new_stores_also_if_another_creates_them() {
    for operation in ["ensure", "switch"] {
        let stores = Stores::new();
        let stalled = OpenAtEnd(Arc::new(Gate::default()));
        let (gate, inner) = (Arc::clone(&stalled.0), Arc::clone(&stores.vectors));
        let vectors = Arc::new(FailingVectors::new(inner, move |called| {
            if called == operation {
                gate.pass();
            }
            None
        }));
        let of_first = Stores { vectors, models: Models(vec![8]), ..stores.clone() };
        let first = tokio::spawn(async move { of_first.process(1).await });
        eventually("the first process is not stalled", async || stalled.0.is_reached()).await;

        let second = Stores { models: Models(vec![16]), ..stores.clone() }.process(1).await;
        assert_eq!(live_models(&stores).await, only("memory-8"), "{operation}");
        let task = second.ingestor.submit(text(1), by_eva()).await.unwrap();
        live(&stores.catalog(), &task).await;
        stalled.0.open();
        let first = first.await.unwrap();
        assert_eq!(live_models(&stores).await, only("memory-8"), "{operation}");
        assert_eq!(stores.vectors.collections().await.unwrap().len(), 4, "{operation}");
        // As if it was started later: its model is another one, and it begins a change.
        let model: Arc<dyn Embedder> = Arc::new(MemoryEmbedder::with_dims(16));
        let change = second.ingestor.embed_by(Some(model.profile()), ReembedTrigger::AtStart).await.unwrap();
        assert_eq!(ended(&stores.catalog(), change.unwrap().task_id).await.status, TaskStatus::Done);
        assert_eq!(live_models(&stores).await, only("memory-16"), "{operation}");
        drop(first);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn processes_that_start_on_new_stores_at_once_agree_on_one_model() {
    for _ in 0..20 {
        let stores = Stores::new();
        let starting = [8, 16, 32].map(|dims| {
            let stores = Stores { models: Models(vec![dims]), ..stores.clone() };
            tokio::spawn(async move { stores.process(1).await })
        });
        let mut processes = Vec::new();
        for starting in starting {
            processes.push(starting.await.unwrap());
        }
        assert_eq!(live_models(&stores).await.len(), 1);
        assert_eq!(stores.vectors.collections().await.unwrap().len(), 4);
    }
}
