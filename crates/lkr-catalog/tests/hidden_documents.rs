//! Two catalogs get the same random changes. One also gets documents of other spaces. Every answer about the readable
//! spaces is the same, and so is the generation of their searches.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by a panic")]

mod support;

use std::{collections::BTreeSet, sync::Arc};

use lkr_catalog::{Acceptance, Catalog, ListFilter, Task, TaskInput, TaskLists, TaskStatus};
use lkr_domain::{Counts, DocId, Document, Fingerprint, Scope, SpaceName, SystemClock};
use lkr_state::MemoryState;
use rand::{RngExt, SeedableRng, rngs::StdRng};

const READABLE: [&str; 2] = ["default", "green"];
const HIDDEN: [&str; 2] = ["black", "grey"];

/// The documents of a kind that may exist at a time.
const DOCUMENTS: u64 = 30;

/// The first id of a document that is hidden from the start. Ids of both kinds alternate in listings.
const HIDDEN_IDS: u64 = 1;

fn space(name: &str) -> SpaceName {
    SpaceName::new(name).unwrap()
}

fn doc_id(n: u64, kind: u64) -> DocId {
    DocId::from_bytes(u128::from(2 * n + kind + 10).to_be_bytes())
}

/// A step on one document.
#[derive(Debug, Clone)]
enum Step {
    /// Publishes it, or changes it if it is live.
    Put(Box<Document>),
    Remove(DocId),
}

fn random_step(rng: &mut StdRng, kind: u64, spaces: &[&str]) -> Step {
    let doc_id = doc_id(rng.random_range(0..DOCUMENTS), kind);
    if rng.random_range(0..4) == 0 {
        return Step::Remove(doc_id);
    }
    let words = ["basalt", "coast", "moon"];
    let text = rng.random_range(0..5_u64);
    let space = space(spaces[rng.random_range(0..spaces.len())]);
    Step::Put(Box::new(Document {
        title: words[rng.random_range(0..3)].to_owned(),
        source: words[rng.random_range(0..3)].to_owned(),
        category: ["", "a", "b"][rng.random_range(0..3)].to_owned(),
        counts: Counts { l1: 1, l2: rng.random_range(0..3), l3: 1, chunks: 2 },
        fingerprint: Some(Fingerprint { sha256: text.to_string(), simhash: text }),
        ..support::document(doc_id, space)
    }))
}

async fn apply(catalog: &Catalog, step: &Step) {
    match step {
        Step::Remove(doc_id) => {
            let state = catalog.document_state(*doc_id).await.unwrap();
            catalog.remove(&state, Vec::new()).await.unwrap();
        }
        Step::Put(document) => {
            let state = catalog.document_state(document.doc_id).await.unwrap();
            if state.document.is_some() {
                catalog.change(&state, document, None, None, Vec::new()).await.unwrap();
                return;
            }
            let input = TaskInput { revision: 1, ..TaskInput::default() };
            let task =
                Task::ingest(&SystemClock, document.doc_id, document.space.clone(), "tester".into(), input);
            let acceptance = Acceptance { task: task.clone(), existing: Some(state) };
            catalog.accept(&[acceptance], Vec::new()).await.unwrap();
            let state = catalog.document_state(document.doc_id).await.unwrap();
            catalog.publish(&state, document, &task, true, Vec::new()).await.unwrap();
        }
    }
}

/// The answers about a scope that depend on a random limit and filter.
async fn answers(catalog: &Catalog, scope: &Scope, limit: usize, filter: &ListFilter) -> Vec<String> {
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let page = catalog.list(scope, filter, after, limit).await.unwrap();
        seen.push(format!("{page:?}"));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    seen.push(format!("{}", catalog.count(scope, filter, |_| true).await.unwrap()));
    seen.push(format!("{:?}", catalog.stats(scope).await.unwrap()));
    seen.push(format!("generation {}", catalog.generation(scope).await.unwrap()));
    if let Scope::Spaces(spaces) = scope {
        for name in &**spaces {
            seen.push(format!("{}", catalog.count_in_space(name).await.unwrap()));
            for text in 0..5 {
                let found = catalog.document_with_text(name, &text.to_string()).await.unwrap();
                seen.push(format!("{:?}", found.ok()));
            }
        }
    }
    for id in (0..3).flat_map(|n| [doc_id(n, 0), doc_id(n, HIDDEN_IDS)]) {
        seen.push(format!("{:?}", catalog.document_in(scope, id).await.unwrap()));
    }
    let spaces = if let Scope::Spaces(spaces) = scope { BTreeSet::clone(spaces) } else { BTreeSet::new() };
    let lists = TaskLists::Of { spaces, asked_by: None };
    let tasks = catalog.tasks(&lists, |_| true, None, limit);
    let page = tasks.await.unwrap();
    let documents: Vec<_> = page.items.iter().map(|task| task.subject).collect();
    seen.push(format!("{documents:?} {}", page.next.is_some()));
    for status in [TaskStatus::Pending, TaskStatus::Failed] {
        let page = catalog.tasks_with_status(&lists, Some(status), |_| true, None, limit).await.unwrap();
        let documents: Vec<_> = page.items.iter().map(|task| task.subject).collect();
        seen.push(format!("{status:?} {documents:?} {}", page.next.is_some()));
    }
    seen
}

#[tokio::test]
async fn random_documents_of_other_spaces_change_no_answer() {
    for seed in 0..20 {
        let mut rng = StdRng::seed_from_u64(seed);
        let catalog = || Catalog::new(Arc::new(MemoryState::default()));
        let (quiet, busy) = (catalog(), catalog());
        for number in 0..250 {
            // Some documents are hidden after they were readable, and come back.
            let spaces = [READABLE[0], READABLE[1], READABLE[0], READABLE[1], HIDDEN[0]];
            let step = random_step(&mut rng, 0, &spaces);
            apply(&quiet, &step).await;
            apply(&busy, &step).await;
            for _ in 0..rng.random_range(0..3) {
                let step = random_step(&mut rng, HIDDEN_IDS, &HIDDEN);
                apply(&busy, &step).await;
            }
            let scope: Scope = READABLE.into_iter().map(space).collect();
            let source = (rng.random_range(0..3) == 0).then(|| "basalt".to_owned());
            let filter = ListFilter { source, ..ListFilter::default() };
            let limit = rng.random_range(1..8);
            let expected = answers(&quiet, &scope, limit, &filter).await;
            assert_eq!(
                answers(&busy, &scope, limit, &filter).await,
                expected,
                "seed {seed}, step {number}: {step:?}"
            );
        }
    }
}
