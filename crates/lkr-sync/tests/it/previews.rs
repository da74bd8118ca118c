//! What a run would do, without doing it.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::SystemTime,
};

use lkr_sync::{ErrorKind, FolderSync, Identity, Opening, Options, Plan, Preview, Result};

use crate::{
    bench::{Bench, age, copy_folder, deleting, options, write},
    service::{Fault, Service},
};

/// The content and the time of every file and folder.
fn snapshot(folder: &Path) -> BTreeMap<PathBuf, (SystemTime, Option<Vec<u8>>)> {
    let mut found = BTreeMap::new();
    let mut paths = vec![folder.to_path_buf()];
    while let Some(path) = paths.pop() {
        let metadata = fs::metadata(&path).unwrap();
        if metadata.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let content = metadata.is_file().then(|| fs::read(&path).unwrap());
        found.insert(path, (metadata.modified().unwrap(), content));
    }
    found
}

/// What a run would do. Nothing in the folder may change.
fn preview(folder: &Path, options: Options, service: &Service) -> Result<(Opening, Plan)> {
    let before = snapshot(folder);
    let result = Preview::open(folder, options)
        .and_then(|mut preview| Ok((preview.opening().clone(), preview.plan(service, &())?)));
    assert_eq!(snapshot(folder), before, "a preview wrote something");
    result
}

/// What a run does before its first change.
fn real(folder: &Path, options: Options, service: &Service) -> (Opening, Plan) {
    let mut sync = FolderSync::open(folder, options).unwrap();
    let plan = sync.plan(service, &()).unwrap();
    (sync.opening().clone(), plan)
}

#[test]
fn preview_of_a_new_folder_writes_nothing() {
    let bench = Bench::new(&[("a.txt", "one"), ("sub/b.txt", "two")]);
    let expected = preview(&bench.root(), options(), &bench.service).unwrap();
    assert_eq!((&expected.0, expected.1.uploads.len()), (&Opening::New, 2));
    assert!(!bench.path(".lkr").exists());
    assert_eq!(real(&bench.root(), options(), &bench.service), expected);
}

#[test]
fn preview_with_any_flag_shows_what_the_run_does_and_writes_nothing() {
    let there = |identity| Options { machine: "there".into(), identity: Some(identity), ..options() };
    for options in [
        options(),
        Options { retry_refused: true, ..options() },
        Options { id: Some("handbook".parse().unwrap()), ..options() },
        there(Identity::Moved),
        there(Identity::Copied),
    ] {
        let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two"), ("c.txt", "bad")]);
        bench.run();
        bench.write("b.txt", "three");
        bench.rename("a.txt", "sub/a.txt");
        age(&bench.path("b.txt"));
        let expected = preview(&bench.root(), options.clone(), &bench.service).unwrap();
        assert_eq!(real(&bench.root(), options, &bench.service), expected);
    }
}

#[test]
fn preview_of_a_copy_and_of_a_moved_folder_writes_nothing() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    copy_folder(&bench.root(), &bench.beside("copy"));
    let copied = preview(&bench.beside("copy"), options(), &bench.service).unwrap();
    assert_eq!(copied.1.uploads.len(), 1);
    assert_eq!(real(&bench.beside("copy"), options(), &bench.service), copied);

    fs::rename(bench.root(), bench.beside("moved")).unwrap();
    let moved = preview(&bench.beside("moved"), options(), &bench.service).unwrap();
    assert!(matches!(moved.0, Opening::Moved { .. }));
    assert_eq!(moved.1.unchanged, 1);
    assert_eq!(real(&bench.beside("moved"), options(), &bench.service), moved);
}

#[test]
fn preview_that_needs_an_answer_fails_like_the_run() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    let there = Options { machine: "there".into(), ..options() };
    let error = preview(&bench.root(), there, &bench.service).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MovedOrCopied);
}

#[test]
fn preview_after_an_interrupted_run_waits_for_its_tasks_and_writes_nothing() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    let mut sync = bench.open();
    let plan = sync.plan(&bench.service, &()).unwrap();
    bench.service.restart_client(BTreeMap::from([(1, Fault::Before(ErrorKind::Unavailable))]));
    sync.apply(plan, &bench.service, deleting(), &()).unwrap_err();
    drop(sync);
    bench.service.restart_client(BTreeMap::new());
    bench.service.finish_tasks(usize::MAX);
    let expected = preview(&bench.root(), options(), &bench.service).unwrap();
    assert_eq!(real(&bench.root(), options(), &bench.service), expected);
}

#[test]
fn preview_needs_no_lock() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    let _running = bench.open();
    let (_, plan) = preview(&bench.root(), options(), &bench.service).unwrap();
    assert!(plan.is_empty());
}

#[cfg(unix)]
#[test]
fn preview_of_a_read_only_folder_succeeds() {
    use std::os::unix::fs::PermissionsExt as _;

    let bench = Bench::new(&[]);
    for is_known in [false, true] {
        write(&bench.path("a.txt"), "one");
        if is_known {
            bench.run();
            bench.write("b.txt", "two");
        }
        let folders = [bench.root(), bench.path(".lkr")];
        let set = |mode| {
            for folder in folders.iter().filter(|folder| folder.exists()) {
                fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        set(0o555);
        let (_, plan) = preview(&bench.root(), options(), &bench.service).unwrap();
        set(0o755);
        assert_eq!(plan.uploads.len(), 1);
    }
}
