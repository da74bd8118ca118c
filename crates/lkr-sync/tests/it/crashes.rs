//! Whatever fails or crashes in between: after one whole run the documents are equal to the folder.

use std::{
    collections::BTreeMap,
    panic::{self, AssertUnwindSafe},
};

use lkr_sync::ErrorKind;
use proptest::prelude::*;

use crate::{
    bench::{Bench, options},
    service::{Crashed, Fault, ME},
};

const PATHS: [&str; 6] = ["a.txt", "b.txt", "x/a.txt", "x/c.txt", "y/z/a.txt", "y/d.md"];
const CONTENTS: [&str; 5] = ["one", "two", "three", "bad", "no"];

#[derive(Debug, Clone)]
enum Step {
    Write(usize, usize),
    Remove(usize),
    Rename(usize, usize),
    /// Another client adds a document of the same source.
    Duplicate(usize, usize),
    /// A run with these faults, after which so many tasks end.
    Run(BTreeMap<usize, Fault>, usize),
}

fn fault() -> impl Strategy<Value = Fault> {
    let kind = prop::sample::select(vec![ErrorKind::Unavailable, ErrorKind::Other, ErrorKind::NotFound]);
    prop_oneof![
        2 => Just(Fault::Crash),
        1 => kind.clone().prop_map(Fault::Before),
        1 => kind.prop_map(Fault::After),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        3 => (path(), 0..CONTENTS.len()).prop_map(|(path, content)| Step::Write(path, content)),
        1 => path().prop_map(Step::Remove),
        2 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => (path(), 0..CONTENTS.len()).prop_map(|(path, content)| Step::Duplicate(path, content)),
        2 => (prop::collection::btree_map(0_usize..24, fault(), 0..4), 0_usize..3)
            .prop_map(|(faults, ended)| Step::Run(faults, ended)),
    ]
}

fn exists(bench: &Bench, path: usize) -> bool {
    bench.path(PATHS[path]).exists()
}

fn apply(bench: &Bench, step: &Step) {
    match step {
        Step::Write(path, content) => bench.write(PATHS[*path], CONTENTS[*content]),
        Step::Remove(path) if exists(bench, *path) => bench.remove(PATHS[*path]),
        Step::Rename(from, to) if exists(bench, *from) => bench.rename(PATHS[*from], PATHS[*to]),
        Step::Duplicate(path, content) => {
            let source = bench.source(PATHS[*path]);
            bench.service.add(&source, ME, CONTENTS[*content].as_bytes());
        }
        Step::Run(faults, ended) => {
            bench.service.restart_client(faults.clone());
            // Dropping what the crash unwinds through is all that the process still does.
            let run = panic::catch_unwind(AssertUnwindSafe(|| bench.try_run(options()).map(drop)));
            if let Err(cause) = run {
                assert!(cause.is::<Crashed>(), "only the crash panics");
            }
            bench.service.restart_client(BTreeMap::new());
            bench.service.finish_tasks(*ended);
        }
        Step::Remove(_) | Step::Rename(..) => {}
    }
}

/// The files of the folder that the service accepts.
fn accepted(bench: &Bench) -> Vec<(String, Vec<u8>)> {
    let read = |path: &&str| Some(((*path).to_owned(), std::fs::read(bench.path(path)).ok()?));
    let mut files: Vec<_> = PATHS.iter().filter_map(read).collect();
    files.retain(|(_, content)| !content.starts_with(b"bad") && !content.starts_with(b"no"));
    files.sort();
    files
}

fn is_refused(bench: &Bench, path: &str) -> bool {
    bench.path(path).exists() && !accepted(bench).iter().any(|(known, _)| known == path)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn one_whole_run_makes_documents_equal_to_the_folder_after_any_faults(
        steps in prop::collection::vec(step(), 1..14),
        delay in 0_usize..3,
    ) {
        let bench = Bench::new(&[]);
        bench.service.inner().delay = delay;
        let others = [
            bench.service.add(&bench.source("a.txt"), "somebody else", b"theirs"),
            bench.service.add("sync:0000000000000000/a.txt", ME, b"of another folder"),
            bench.service.add("a.txt", ME, b"of no folder"),
        ];
        let before: Vec<_> = bench.service.inner().documents.clone();
        for step in &steps {
            apply(&bench, step);
        }
        let report = bench.run();
        // No task of an interrupted run is left that would change something later.
        bench.service.finish_tasks(usize::MAX);

        let prefix = bench.open().source_prefix();
        let mut stored = bench.service.contents(&prefix);
        // A refused change leaves the document of the earlier bytes.
        stored.retain(|(path, _)| !is_refused(&bench, path));
        prop_assert_eq!(stored, accepted(&bench), "{:?}", report);
        let inner = bench.service.inner();
        for (doc_id, document) in others.iter().zip(&before) {
            prop_assert_eq!(inner.documents.iter().find(|d| d.doc_id == *doc_id), Some(document));
        }
        drop(inner);
        let plan = bench.plan();
        prop_assert!(plan.is_empty(), "{:?}", plan);
    }
}
