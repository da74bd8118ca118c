//! Taking and restoring backups.

use std::{fs, path::Path, time::Duration};

use lkr::{
    DocId, ErrorKind, Folders, KnowledgeBase, NewDocument, Scope, SearchRequest, SearchResponse,
    backup::{open_backup, restore, verify},
    files::{FileReader, FileTools},
};

fn document(name: &str, sections: usize) -> NewDocument {
    let section = |n: usize| format!("## {name} {n}\n\nWhat there is to say of {name}, part {n}.\n");
    let text = format!("# {name}\n\n{}", (0..sections).map(section).collect::<String>());
    NewDocument { text, ..NewDocument::default() }
}

async fn archive(kb: &KnowledgeBase) -> Vec<u8> {
    let mut archive = Vec::new();
    let done = kb.backup().await.unwrap().write(&mut archive).await.unwrap();
    assert!(done.problems.is_empty(), "{done:?}");
    assert_eq!(verify(&archive[..]).await.unwrap(), done);
    archive
}

/// The response of a search, without its duration.
async fn response(kb: &KnowledgeBase, query: &str) -> SearchResponse {
    let found = kb.search(&SearchRequest::new(query)).await.unwrap();
    SearchResponse { took_ms: 0, ..(*found.response).clone() }
}

/// Three documents, one of them a file.
async fn fill(kb: &KnowledgeBase, folder: &Path) -> [DocId; 3] {
    let io = kb.add(document("Io", 3)).await.unwrap();
    let europa = kb.add(document("Europa", 2)).await.unwrap();
    let path = folder.join("moon.md");
    fs::write(&path, "# Titan\n\nTitan has lakes of methane.").unwrap();
    let reader = FileReader::in_process(folder.join("spool"), FileTools::default()).unwrap();
    let titan = kb.add_file(&reader, &path).await.unwrap();
    [io.doc_id, europa.doc_id, titan.doc_id]
}

fn files_below(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files = Vec::new();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path.display().to_string()) }
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn restored_knowledge_base_equals_the_original() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    let ids = fill(&kb, source.path()).await;
    let archive = archive(&kb).await;
    assert!(!source.path().join("kb/backup.tmp").exists(), "the temporary copy is deleted");

    let folders = Folders::new(target.path().join("deep/kb"));
    let restored = restore(&archive[..], &folders).await.unwrap();
    assert!(restored.problems.is_empty() && !restored.with_secret_key);
    assert!(files_below(target.path()).iter().all(|path| !path.contains("restoring")));
    let other = KnowledgeBase::open(&folders.data_dir).await.unwrap();
    assert_eq!(other.stats(&Scope::All).await.unwrap(), kb.stats(&Scope::All).await.unwrap());
    for query in ["methane lakes", "Io", "Europa 1"] {
        assert_eq!(response(&other, query).await, response(&kb, query).await);
    }
    for id in ids {
        assert_eq!(other.document(id).await.unwrap(), kb.document(id).await.unwrap());
        assert_eq!(other.text(id).await.unwrap(), kb.text(id).await.unwrap());
    }
    let titan = other.document(ids[2]).await.unwrap().unwrap();
    assert_eq!(other.original(&titan).await.unwrap().unwrap().size_bytes, 36);
    // The restored knowledge base accepts writes.
    other.delete(ids[0]).await.unwrap();
    other.add(document("Ganymede", 2)).await.unwrap();
    assert_eq!(other.stats(&Scope::All).await.unwrap().counts.l1, 3);
    assert!(kb.document(ids[0]).await.unwrap().is_some());
}

/// Deleted documents are collected once the archive is written.
#[tokio::test(flavor = "multi_thread")]
async fn backup_contains_documents_deleted_while_it_is_written() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    let ids = fill(&kb, source.path()).await;
    let stats = kb.stats(&Scope::All).await.unwrap();
    let backup = kb.backup().await.unwrap();
    let refused = kb.backup().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Overloaded);
    for id in ids {
        kb.delete(id).await.unwrap();
    }
    kb.add(document("Callisto", 1)).await.unwrap();
    let mut archive = Vec::new();
    assert!(backup.write(&mut archive).await.unwrap().problems.is_empty());
    drop(backup);
    let (blobs, uploads) = (source.path().join("kb/blobs"), source.path().join("kb/uploads"));
    let collected = async {
        let is_text = |file: &&String| !file.ends_with("/knowledge-base");
        while files_below(&blobs).iter().filter(is_text).count() > 1 || !files_below(&uploads).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), collected).await.expect("deleted documents are collected");

    let folders = Folders::new(target.path());
    restore(&archive[..], &folders).await.unwrap();
    let other = KnowledgeBase::open(&folders.data_dir).await.unwrap();
    assert_eq!(other.stats(&Scope::All).await.unwrap(), stats);
    assert!(other.text(ids[1]).await.unwrap().is_some());
    drop(kb.backup().await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_over_existing_data_or_from_a_damaged_archive_is_refused() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    fill(&kb, source.path()).await;
    let archive = archive(&kb).await;

    let refused = restore(&archive[..], &Folders::new(source.path().join("kb"))).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.to_string().contains("kb/store already"), "{refused}");

    let folders = Folders::new(target.path());
    for at in (600..archive.len() - 2_048).step_by(archive.len() / 20) {
        let mut damaged = archive.clone();
        damaged[at] ^= 0x10;
        // Padding between entries is not checked.
        if let Err(refused) = restore(&damaged[..], &folders).await {
            assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
            assert_eq!(files_below(target.path()), Vec::<String>::new());
        } else {
            fs::remove_dir_all(target.path()).unwrap();
        }
        let short = restore(&archive[..at], &folders).await.unwrap_err();
        assert_eq!(short.kind(), ErrorKind::Invalid, "{short}");
    }
    assert_eq!(files_below(target.path()), Vec::<String>::new());
}

/// A kill before the last move leaves texts and originals without a store.
#[tokio::test(flavor = "multi_thread")]
async fn restore_that_was_interrupted_before_its_last_move_is_repeated() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    let ids = fill(&kb, source.path()).await;
    let archive = archive(&kb).await;
    let folders = Folders::new(target.path().join("kb"));
    restore(&archive[..], &folders).await.unwrap();
    let staging = folders.data_dir.join("store/.restoring");
    fs::create_dir(&staging).unwrap();
    fs::rename(folders.data_dir.join("store/kb"), staging.join("kb")).unwrap();
    // Without a note of what was moved, the texts may be somebody else's.
    let refused = restore(&archive[..], &folders).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);

    let moved = [&folders.blobs_dir, &folders.uploads_dir]
        .into_iter()
        .flat_map(|folder| fs::read_dir(folder.canonicalize().unwrap()).unwrap());
    let line = |entry: std::io::Result<fs::DirEntry>| format!("{}\n", entry.unwrap().path().display());
    fs::write(staging.join("committing"), moved.map(line).collect::<String>()).unwrap();
    let told = KnowledgeBase::open(&folders.data_dir).await.err().unwrap().to_string();
    assert!(told.contains("restore again") && told.contains("texts"), "{told}");
    restore(&archive[..], &folders).await.unwrap();
    let other = KnowledgeBase::open(&folders.data_dir).await.unwrap();
    assert_eq!(other.stats(&Scope::All).await.unwrap(), kb.stats(&Scope::All).await.unwrap());
    for id in ids {
        assert_eq!(other.text(id).await.unwrap(), kb.text(id).await.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_of_a_closed_knowledge_base_contains_the_secret_key_on_request() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let folders = Folders::new(source.path().join("kb"));
    assert_eq!(open_backup(&folders).await.unwrap_err().kind(), ErrorKind::NotFound);
    let kb = KnowledgeBase::open(&folders.data_dir).await.unwrap();
    let ids = fill(&kb, source.path()).await;
    assert_eq!(open_backup(&folders).await.unwrap_err().kind(), ErrorKind::Conflict);
    kb.close().await;
    fs::write(folders.data_dir.join("secret.key"), "00").unwrap();

    for with_key in [false, true] {
        let backup = open_backup(&folders).await.unwrap();
        let backup = if with_key { backup.with_secret_key(&folders).await.unwrap() } else { backup };
        let mut archive = Vec::new();
        backup.write(&mut archive).await.unwrap();
        drop(backup);
        let to = Folders::new(target.path().join(with_key.to_string()));
        let restored = restore(&archive[..], &to).await.unwrap();
        assert_eq!(restored.with_secret_key, with_key);
        assert_eq!(to.data_dir.join("secret.key").exists(), with_key);
        let other = KnowledgeBase::open(&to.data_dir).await.unwrap();
        assert!(other.text(ids[2]).await.unwrap().unwrap().contains("methane"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_restore_leaves_the_folders_as_they_were() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    fill(&kb, source.path()).await;
    kb.close().await;
    let from = Folders::new(source.path().join("kb"));
    fs::write(from.data_dir.join("secret.key"), "00").unwrap();
    let mut archive = Vec::new();
    let backup = open_backup(&from).await.unwrap().with_secret_key(&from).await.unwrap();
    backup.write(&mut archive).await.unwrap();

    // The target has a folder with a file of somebody else, and no folder below it.
    fs::write(target.path().join("notes.txt"), "mine").unwrap();
    let inner = Folders::new(target.path().join("deep/kb"));
    let folders = Folders::new(target.path());
    let before = paths_below(target.path());
    for at in (600..archive.len()).step_by(archive.len() / 40) {
        for to in [&inner, &folders] {
            assert!(restore(&archive[..at], to).await.is_err());
            assert_eq!(paths_below(target.path()), before, "cut at {at} of {}", archive.len());
        }
    }
    // An empty folder of the target stays.
    fs::create_dir_all(&inner.uploads_dir).unwrap();
    let before = paths_below(target.path());
    assert!(restore(&archive[..archive.len() / 2], &inner).await.is_err());
    assert_eq!(paths_below(target.path()), before);

    fs::write(target.path().join("secret.key"), "01").unwrap();
    let before = paths_below(target.path());
    assert_eq!(restore(&archive[..], &folders).await.unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(paths_below(target.path()), before);
    assert_eq!(fs::read(target.path().join("secret.key")).unwrap(), b"01");
}

/// The files and folders below a folder, sorted.
fn paths_below(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            paths.extend(paths_below(&path));
        }
        paths.push(path);
    }
    paths.sort();
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_names_missing_and_damaged_files_and_saves_the_rest() {
    let source = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    let ids = fill(&kb, source.path()).await;
    let text = files_below(&source.path().join("kb/blobs/texts"))
        .into_iter()
        .find(|path| path.contains(&ids[0].to_string()));
    let mut flipped = fs::read(text.as_ref().unwrap()).unwrap();
    flipped[5] ^= 1;
    fs::write(text.as_ref().unwrap(), &flipped).unwrap();
    let uploads = files_below(&source.path().join("kb/uploads"));
    fs::write(&uploads[0], "").unwrap();
    for is_missing in [false, true] {
        if is_missing {
            fs::remove_file(&uploads[0]).unwrap();
        }
        let mut archive = Vec::new();
        let done = kb.backup().await.unwrap().write(&mut archive).await.unwrap();
        let (missing, damaged) = (&done.problems.missing, &done.problems.damaged);
        assert_eq!((missing.len(), damaged.len()), if is_missing { (1, 1) } else { (0, 2) }, "{done:?}");
        assert!(text.as_ref().unwrap().ends_with(&damaged[0]), "{done:?}");
        let original = if is_missing { &missing[0] } else { &damaged[1] };
        assert!(uploads[0].ends_with(original), "{done:?}");
        let to = Folders::new(source.path().join(is_missing.to_string()));
        assert_eq!(restore(&archive[..], &to).await.unwrap().problems, done.problems);
        let other = KnowledgeBase::open(&to.data_dir).await.unwrap();
        assert!(other.text(ids[1]).await.unwrap().is_some());
    }
}

/// A folder may be a link to another disk.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn restore_follows_a_linked_uploads_folder() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    let ids = fill(&kb, source.path()).await;
    let archive = archive(&kb).await;
    let (data, elsewhere) = (target.path().join("kb"), target.path().join("elsewhere"));
    fs::create_dir(&data).unwrap();
    fs::create_dir(&elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, data.join("uploads")).unwrap();
    restore(&archive[..], &Folders::new(&data)).await.unwrap();
    assert_eq!(files_below(&elsewhere).len(), 1);
    let other = KnowledgeBase::open(&data).await.unwrap();
    let titan = other.document(ids[2]).await.unwrap().unwrap();
    assert!(other.original(&titan).await.unwrap().is_some());
}

/// Files that are added later are readable for others, as the folder around them keeps others out.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn data_folder_that_restore_creates_is_private() {
    let (source, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    kb.add(document("Io", 1)).await.unwrap();
    let folders = Folders::new(target.path().join("kb"));
    restore(&archive(&kb).await[..], &folders).await.unwrap();
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&folders.data_dir).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
}

/// A client disconnects while the copy is made.
#[tokio::test(flavor = "multi_thread")]
async fn dropped_backup_leaves_no_copy() {
    let source = tempfile::tempdir().unwrap();
    let kb = KnowledgeBase::open(source.path().join("kb")).await.unwrap();
    fill(&kb, source.path()).await;
    let copy = source.path().join("kb/backup.tmp");
    for _ in 0..20 {
        let dropped = tokio::time::timeout(Duration::from_micros(300), kb.backup()).await;
        drop(dropped);
        let collected = async {
            while copy.exists() || kb.backup().await.is_err() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), collected).await.expect("the next backup succeeds");
    }
    archive(&kb).await;
}
