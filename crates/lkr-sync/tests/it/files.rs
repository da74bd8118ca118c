//! Which files are synchronised.

use std::fs;

use lkr_sync::{IssueKind, Options};

use crate::bench::{Bench, options};

#[test]
fn ignore_files_hidden_files_and_other_extensions_are_left_out() {
    let bench = Bench::new(&[
        (".gitignore", "ignored.txt\nboth.txt\nfolder/\n"),
        (".lkrignore", "own.txt\n!both.txt\n!.shown.txt\n"),
        ("sub/.gitignore", "*.md\n!kept.md\n"),
        (".git/config.txt", ""),
        (".hidden.txt", ""),
        (".shown.txt", "1"),
        ("ignored.txt", ""),
        ("both.txt", "2"),
        ("own.txt", ""),
        ("folder/a.txt", ""),
        ("sub/a.md", ""),
        ("sub/kept.md", "3"),
        ("a.pdf", ""),
        ("txt", ""),
    ]);
    bench.run();
    assert_eq!(bench.stored(), [".shown.txt", "both.txt", "sub/kept.md"]);
}

#[test]
fn ignore_files_above_the_folder_do_not_count() {
    let bench = Bench::new(&[("a.txt", "one")]);
    fs::write(bench.beside(".gitignore"), "*.txt\n").unwrap();
    fs::create_dir(bench.beside(".git")).unwrap();
    bench.run();
    assert_eq!(bench.stored(), ["a.txt"]);
}

#[test]
fn file_that_becomes_ignored_is_deleted_from_the_service() {
    let bench = Bench::new(&[("a.txt", "one"), ("b.txt", "two")]);
    bench.run();
    bench.write(".lkrignore", "a.txt\n");
    assert_eq!(bench.run().deleted, 1);
    assert_eq!(bench.stored(), ["b.txt"]);
}

#[test]
fn too_large_file_is_reported_and_its_document_kept() {
    let bench = Bench::new(&[("a.txt", "one")]);
    bench.run();
    bench.write("a.txt", "longer");
    let report = bench.try_run(Options { max_bytes: 5, ..options() }).unwrap();
    assert_eq!((report.count(IssueKind::TooLarge), report.deleted), (1, 0));
    assert_eq!(bench.stored(), ["a.txt"]);
}

#[test]
fn line_of_an_ignore_file_that_is_not_valid_is_reported() {
    let bench = Bench::new(&[(".lkrignore", "[z-a]\nb.txt\n"), ("b.txt", "one"), ("c.txt", "two")]);
    let report = bench.run();
    assert_eq!(report.count(IssueKind::IgnoreFile), 1);
    assert_eq!(bench.stored(), ["c.txt"]);
}

/// PowerShell writes UTF-16 by default. Its rules must not be passed over.
#[test]
fn ignore_file_that_is_not_utf8_hides_its_folder() {
    for folder in ["", "sub/"] {
        let bench = Bench::new(&[("sub/secret.txt", "one"), ("b.txt", "two")]);
        let utf16: Vec<u8> = "\u{feff}secret.txt\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write(bench.path(&format!("{folder}.lkrignore")), utf16).unwrap();
        let report = bench.run();
        assert!(report.count(IssueKind::Unreadable) >= 1, "{folder:?}");
        let expected: &[&str] = if folder.is_empty() { &[] } else { &["b.txt"] };
        assert_eq!(bench.stored(), expected, "{folder:?}");
    }
}

#[cfg(unix)]
mod unix {
    use std::{
        ffi::OsStr,
        os::unix::{
            ffi::OsStrExt,
            fs::{PermissionsExt, symlink},
        },
    };

    use lkr_sync::FolderSync;

    use super::*;
    use crate::service::ME;

    #[test]
    fn ignore_file_that_cannot_be_read_hides_its_folder_and_keeps_the_documents() {
        let bench = Bench::new(&[("sub/a.txt", "one"), ("b.txt", "two")]);
        bench.run();
        bench.write("sub/new.txt", "maybe secret");
        bench.remove("sub/a.txt");
        // A link to itself.
        symlink(".lkrignore", bench.path("sub/.lkrignore")).unwrap();
        let report = bench.run();
        assert_eq!((report.new, report.deleted, report.count(IssueKind::Unreadable)), (0, 0, 1));
        assert_eq!(bench.stored(), ["b.txt", "sub/a.txt"]);
    }

    #[test]
    fn symbolic_links_are_not_followed() {
        let bench = Bench::new(&[("a.txt", "one")]);
        fs::create_dir(bench.beside("outside")).unwrap();
        fs::write(bench.beside("outside/b.txt"), "two").unwrap();
        symlink(bench.beside("outside"), bench.path("folder")).unwrap();
        symlink(bench.beside("outside/b.txt"), bench.path("b.txt")).unwrap();
        symlink(bench.root(), bench.path("loop")).unwrap();
        bench.run();
        assert_eq!(bench.stored(), ["a.txt"]);
    }

    #[test]
    fn name_that_is_not_utf8_is_reported_and_skipped() {
        let bench = Bench::new(&[("a.txt", "one")]);
        if fs::write(bench.root().join(OsStr::from_bytes(b"\xff.txt")), "two").is_err() {
            return; // This file system has no such names.
        }
        let report = bench.run();
        assert_eq!((report.new, report.count(IssueKind::NotUtf8)), (1, 1));
    }

    #[test]
    fn folder_and_file_without_permission_keep_their_documents() {
        let bench = Bench::new(&[("sub/deep/a.txt", "one"), ("b.txt", "two"), ("c.txt", "three")]);
        bench.run();
        let (folder, file) = (bench.path("sub"), bench.path("b.txt"));
        fs::write(&file, "TWO").unwrap();
        let set = |mode| {
            for path in [&folder, &file] {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        set(0);
        // Root reads everything; the next test needs no permissions.
        let is_root = fs::read_dir(&folder).is_ok();
        let report = bench.run();
        set(0o755);
        if !is_root {
            assert_eq!((report.deleted, report.count(IssueKind::Unreadable)), (0, 2));
        }
        assert_eq!(bench.stored(), ["b.txt", "c.txt", "sub/deep/a.txt"]);
    }

    /// Not even root lists a folder whose path is longer than the system allows.
    #[cfg(target_os = "linux")]
    #[test]
    fn folder_that_cannot_be_listed_keeps_its_documents() {
        let bench = Bench::new(&[("a.txt", "one")]);
        let name = "n".repeat(250);
        let half: Vec<&str> = std::iter::repeat_n(name.as_str(), 9).collect();
        let (upper, lower) = (bench.path(&half.join("/")), bench.path("lower"));
        fs::create_dir_all(&upper).unwrap();
        fs::create_dir_all(lower.join(half.join("/"))).unwrap();
        fs::rename(&lower, upper.join("lower")).unwrap();
        let below = format!("{0}/lower/{0}/b.txt", half.join("/"));
        bench.service.add(&bench.source(&below), ME, b"kept");
        let report = bench.run();
        assert!(report.count(IssueKind::Unreadable) > 0);
        assert_eq!((report.new, report.deleted), (1, 0));
        assert_eq!(bench.stored().len(), 2);
    }

    #[test]
    fn folder_that_does_not_exist_is_an_error() {
        let bench = Bench::new(&[]);
        assert!(FolderSync::open(&bench.beside("none"), options()).is_err());
    }
}
