//! Which folder it is: locked, moved, copied, on another machine.

use std::fs;

use lkr_sync::{ErrorKind, FolderSync, Identity, Opening, Options};

use crate::bench::{Bench, copy_folder, options, run};

#[test]
fn second_run_at_a_time_is_busy() {
    let bench = Bench::new(&[]);
    let first = bench.open();
    let error = FolderSync::open(&bench.root(), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy);
    drop(first);
    bench.open();
}

#[test]
fn own_files_are_ignored_by_git_and_not_synchronised() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    assert_eq!(fs::read_to_string(bench.path(".lkr/.gitignore")).unwrap(), "*\n");
    bench.write(".lkr/b.txt", "two");
    bench.write(".lkrignore", "!.lkr\n!b.txt\n");
    bench.run();
    assert_eq!(bench.stored(), ["a.txt"]);
}

#[test]
fn moved_folder_keeps_its_documents() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    let (id, root) = (bench.open().id().to_owned(), fs::canonicalize(bench.root()).unwrap());
    fs::rename(bench.root(), bench.beside("elsewhere")).unwrap();
    let mut sync = FolderSync::open(&bench.beside("elsewhere"), options()).unwrap();
    assert_eq!((sync.id(), sync.opening()), (id.as_str(), &Opening::Moved { from: root }));
    assert!(sync.plan(&bench.service, &()).unwrap().is_empty());
    drop(sync);
    let again = FolderSync::open(&bench.beside("elsewhere"), options()).unwrap();
    assert_eq!(again.opening(), &Opening::Known);
}

#[test]
fn copied_folder_gets_documents_of_its_own() {
    let bench = Bench::new(&[("a.txt", "one")]);
    assert_eq!(bench.open().opening(), &Opening::New);
    bench.run();
    copy_folder(&bench.root(), &bench.beside("copy"));
    let mut copy = FolderSync::open(&bench.beside("copy"), options()).unwrap();
    assert!(matches!(copy.opening(), Opening::Copied { .. }));
    assert_eq!(run(&mut copy, &bench.service).unwrap().new, 1);
    assert_ne!(copy.id(), bench.open().id());
    assert!(bench.plan().is_empty());
    assert_eq!(bench.service.inner().documents.len(), 2);
}

#[test]
fn given_id_makes_a_fresh_checkout_the_same_folder() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    let named = || Options { id: Some("handbook".parse().unwrap()), ..options() };
    assert_eq!(bench.try_run(named()).unwrap().new, 2);
    fs::remove_dir_all(bench.path(".lkr")).unwrap();
    fs::remove_file(bench.path("b.txt")).unwrap();
    let mut fresh = FolderSync::open(&bench.root(), named()).unwrap();
    assert_eq!((fresh.source_prefix().as_str(), fresh.opening()), ("sync:handbook/", &Opening::New));
    let plan = fresh.plan(&bench.service, &()).unwrap();
    assert_eq!((plan.unchanged, plan.deletes.len(), plan.uploads.len()), (1, 1, 0));
    drop(fresh);
    assert_eq!(FolderSync::open(&bench.root(), named()).unwrap().opening(), &Opening::Known);
}

/// As where the disk of a folder is not mounted: only the id that was given says whose documents these are.
#[test]
fn empty_place_with_a_given_id_deletes_nothing() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    let named = || Options { id: Some("handbook".parse().unwrap()), ..options() };
    assert_eq!(bench.try_run(named()).unwrap().new, 2);
    let empty = bench.beside("empty");
    fs::create_dir(&empty).unwrap();
    for _ in 0..2 {
        let mut sync = FolderSync::open(&empty, named()).unwrap();
        let error = sync.plan(&bench.service, &()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Folder);
        assert!(error.to_string().contains("2 documents have its id"), "{error}");
    }
    // A folder that had files may lose all of them.
    for name in ["a.txt", "b.txt"] {
        fs::remove_file(bench.path(name)).unwrap();
    }
    let mut sync = FolderSync::open(&bench.root(), named()).unwrap();
    assert_eq!(sync.plan(&bench.service, &()).unwrap().deletes.len(), 2);
    drop(sync);
    // With a file in it, the place is a checkout.
    fs::write(empty.join("c.txt"), "three").unwrap();
    let mut sync = FolderSync::open(&empty, named()).unwrap();
    assert_eq!(sync.plan(&bench.service, &()).unwrap().deletes.len(), 2);
}

#[cfg(unix)]
#[test]
fn folder_with_two_paths_is_one() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    std::os::unix::fs::symlink(bench.root(), bench.beside("link")).unwrap();
    let sync = FolderSync::open(&bench.beside("link"), options()).unwrap();
    assert_eq!(sync.opening(), &Opening::Known);
}

#[test]
fn folder_of_another_machine_needs_an_answer() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    let id = bench.open().id().to_owned();
    let there = |identity| Options { machine: "there".into(), identity, ..options() };
    let error = FolderSync::open(&bench.root(), there(None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MovedOrCopied);
    assert!(error.to_string().contains("here"), "{error}");

    let moved = FolderSync::open(&bench.root(), there(Some(Identity::Moved))).unwrap();
    assert_eq!(moved.id(), id);
    drop(moved);
    let known = FolderSync::open(&bench.root(), there(None)).unwrap();
    assert_eq!(known.opening(), &Opening::Known);
    drop(known);
    let elsewhere = Options { machine: "third".into(), identity: Some(Identity::Copied), ..options() };
    assert_ne!(FolderSync::open(&bench.root(), elsewhere).unwrap().id(), id);
}

#[test]
fn each_target_has_a_state_of_its_own() {
    let bench = Bench::new(&[("a.txt", "bad")]);
    bench.run();
    let other = Options { target: "http://other/ default".into(), ..options() };
    let service = crate::service::Service::default();
    let mut sync = FolderSync::open(&bench.root(), other).unwrap();
    assert_eq!(sync.plan(&service, &()).unwrap().uploads.len(), 1, "the other service did not refuse it");
}

#[test]
fn record_of_a_later_version_is_an_error() {
    let bench = Bench::new(&[]);
    bench.run();
    let path = bench.path(".lkr/folder.json");
    let later = fs::read_to_string(&path).unwrap().replace("\"version\": 1", "\"version\": 2");
    fs::write(&path, later).unwrap();
    let error = FolderSync::open(&bench.root(), options()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedVersion);
}
