//! Which folder it is on the same machine: moved, copied, restored, recorded by an earlier version.

use std::{
    fs,
    path::{Path, PathBuf},
};

use lkr_sync::{Error, ErrorKind, FolderSync, Identity, Opening, Options};
use serde_json::Value;

use crate::bench::{Bench, copy_folder, options, run};

fn told(identity: Identity) -> Options {
    Options { identity: Some(identity), ..options() }
}

/// The id of a folder, and how it is found.
fn opened(folder: &Path, options: Options) -> Result<(String, Opening), Error> {
    let sync = FolderSync::open(folder, options)?;
    Ok((sync.id().to_owned(), sync.opening().clone()))
}

fn opening(folder: &Path) -> Opening {
    opened(folder, options()).unwrap().1
}

fn record(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join(".lkr/folder.json")).unwrap()).unwrap()
}

/// Removes from the record what earlier versions did not record.
fn make_earlier(folder: &Path) {
    let mut record = record(folder);
    record.as_object_mut().unwrap().remove("inode");
    fs::write(folder.join(".lkr/folder.json"), record.to_string()).unwrap();
}

/// A folder that was synchronised, copied, and then moved; and the copy.
fn moved_and_copied(bench: &Bench) -> (PathBuf, PathBuf) {
    bench.run();
    let (moved, copy) = (bench.beside("docs-v1"), bench.beside("docs-v2"));
    copy_folder(&bench.root(), &copy);
    fs::rename(bench.root(), &moved).unwrap();
    (moved, copy)
}

#[cfg(unix)]
#[test]
fn copy_whose_original_was_moved_needs_an_answer() {
    let bench = Bench::new(&[("a.txt", "one")]);
    let (moved, copy) = moved_and_copied(&bench);
    let mut first = FolderSync::open(&moved, options()).unwrap();
    assert!(matches!(first.opening(), Opening::Moved { .. }));
    assert_eq!(run(&mut first, &bench.service).unwrap().unchanged, 1);

    let error = FolderSync::open(&copy, options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MovedOrCopied);
    assert!(error.to_string().contains("was synchronised as "), "{error}");
    let mut second = FolderSync::open(&copy, told(Identity::Copied)).unwrap();
    assert_eq!(run(&mut second, &bench.service).unwrap().new, 1);
    assert_ne!(first.id(), second.id());
    drop((first, second));

    assert_eq!((opening(&moved), opening(&copy)), (Opening::Known, Opening::Known));
    assert_eq!(bench.service.inner().documents.len(), 2);
}

#[cfg(unix)]
#[test]
fn copy_that_is_opened_before_its_moved_original_needs_an_answer() {
    let bench = Bench::new(&[("a.txt", "one")]);
    let (moved, copy) = moved_and_copied(&bench);
    assert_eq!(FolderSync::open(&copy, options()).unwrap_err().kind(), ErrorKind::MovedOrCopied);
    let (id, copied) = opened(&copy, told(Identity::Copied)).unwrap();
    assert!(matches!(copied, Opening::Copied { .. }));
    let (kept, found) = opened(&moved, options()).unwrap();
    assert!(matches!(found, Opening::Moved { .. }));
    assert_ne!(id, kept);
}

#[cfg(unix)]
#[test]
fn folder_that_was_moved_across_file_systems_goes_on_if_the_caller_says_so() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    let id = bench.open().id().to_owned();
    copy_folder(&bench.root(), &bench.beside("disk"));
    fs::remove_dir_all(bench.root()).unwrap();
    let error = FolderSync::open(&bench.beside("disk"), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MovedOrCopied);
    let (moved, _) = opened(&bench.beside("disk"), told(Identity::Moved)).unwrap();
    assert_eq!(moved, id);
    assert_eq!(opening(&bench.beside("disk")), Opening::Known);
}

#[test]
fn folder_that_was_restored_in_its_place_goes_on_and_may_be_moved_then() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    copy_folder(&bench.root(), &bench.beside("backup"));
    fs::remove_dir_all(bench.root()).unwrap();
    copy_folder(&bench.beside("backup"), &bench.root());
    assert_eq!(opening(&bench.root()), Opening::Known);
    fs::rename(bench.root(), bench.beside("elsewhere")).unwrap();
    assert!(matches!(opening(&bench.beside("elsewhere")), Opening::Moved { .. }));
}

#[test]
fn original_whose_place_was_taken_by_a_copy_gets_an_id_of_its_own() {
    let bench = Bench::new(&[("a.txt", "one")]);
    let (moved, copy) = moved_and_copied(&bench);
    fs::rename(copy, bench.root()).unwrap();
    let (id, found) = opened(&bench.root(), options()).unwrap();
    assert_eq!(found, Opening::Known);
    let (other, found) = opened(&moved, options()).unwrap();
    assert!(matches!(found, Opening::Copied { .. }));
    assert_ne!(id, other);
}

#[test]
fn record_of_an_earlier_version_counts_as_before_and_is_completed() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    make_earlier(&bench.root());
    assert_eq!(opening(&bench.root()), Opening::Known);
    assert_eq!(record(&bench.root()).get("inode").is_some(), cfg!(unix));

    make_earlier(&bench.root());
    fs::rename(bench.root(), bench.beside("moved")).unwrap();
    assert!(matches!(opening(&bench.beside("moved")), Opening::Moved { .. }));
    assert_eq!(record(&bench.beside("moved")).get("inode").is_some(), cfg!(unix));

    make_earlier(&bench.beside("moved"));
    copy_folder(&bench.beside("moved"), &bench.beside("copy"));
    assert!(matches!(opening(&bench.beside("copy")), Opening::Copied { .. }));
}

#[cfg(unix)]
mod random {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Copy(usize),
        Move(usize),
        Open(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_usize..8).prop_map(Step::Copy),
            (0_usize..8).prop_map(Step::Move),
            (0_usize..8).prop_map(Step::Open),
        ]
    }

    /// Takes a step with one of the folders. Paths are never used again.
    fn take(step: Step, folders: &mut Vec<PathBuf>, new: PathBuf) {
        let count = folders.len();
        match step {
            Step::Copy(index) => {
                copy_folder(&folders[index % count], &new);
                folders.push(new);
            }
            Step::Move(index) => {
                fs::rename(&folders[index % count], &new).unwrap();
                folders[index % count] = new;
            }
            // One of which nothing can be said stays as it is.
            Step::Open(index) => drop(FolderSync::open(&folders[index % count], options())),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn folders_that_are_copied_and_moved_never_go_on_with_one_id(
            steps in prop::collection::vec(step(), 1..24),
        ) {
            let bench = Bench::new(&[]);
            drop(bench.open());
            let mut folders = vec![fs::canonicalize(bench.root()).unwrap()];
            for (number, step) in steps.into_iter().enumerate() {
                let new = folders[0].with_file_name(number.to_string());
                take(step, &mut folders, new);
                let mut ids = BTreeSet::new();
                for folder in &folders {
                    let record = record(folder);
                    let is_opened = record["path"].as_str() == folder.to_str();
                    prop_assert!(!is_opened || ids.insert(record["id"].to_string()), "{folder:?}: {record}");
                }
            }
        }
    }
}
