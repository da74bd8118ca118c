use std::fs;

use tempfile::TempDir;

use super::*;

fn entry(id: &str) -> Entry {
    let change = Change {
        key: format!("a/{id}"),
        kind: ChangeKind::Put { ttl_ms: Some(5) },
        base: None,
        value: Some(id.to_owned().into()),
        version: 7,
    };
    Entry::new(id.to_owned(), true, vec![change])
}

fn ids(journal: &Journal) -> String {
    journal.entries().map(|entry| entry.id.as_str()).collect::<Vec<_>>().join(" ")
}

/// A folder with a journal of three steps, and the lengths of its file after each.
fn journal_of_three() -> (TempDir, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let mut journal = Journal::open(folder.path()).unwrap();
    let mut lengths = vec![journal.bytes];
    for id in ["one", "two", "three"] {
        journal.append(entry(id)).unwrap();
        lengths.push(journal.bytes);
    }
    (folder, lengths)
}

#[test]
fn journal_returns_its_steps_after_it_is_opened_again() {
    let (folder, _) = journal_of_three();
    let mut journal = Journal::open(folder.path()).unwrap();
    assert_eq!(ids(&journal), "one two three");
    let first = journal.first().unwrap();
    assert!(first.changes == entry("one").changes && first.has_seen_sentinel);
    assert!(journal.is_pending("a/one") && !journal.is_pending("a/four"));
    journal.remove_first();
    assert!(!journal.is_pending("a/one"));
    drop(journal);
    let mut journal = Journal::open(folder.path()).unwrap();
    assert_eq!(ids(&journal), "two three");
    journal.remove_first();
    journal.remove_first();
    assert_eq!(journal.len(), 0);
    let file = folder.path().join(FILE);
    assert_eq!(fs::metadata(&file).unwrap().len(), HEADER.len() as u64, "an empty journal takes no room");
    journal.append(entry("four")).unwrap();
    drop(journal);
    assert_eq!(ids(&Journal::open(folder.path()).unwrap()), "four");
}

/// A kill can end a write at any byte. The steps before it stay, and the journal goes on.
#[test]
fn journal_cut_at_any_byte_keeps_all_whole_steps() {
    let (folder, lengths) = journal_of_three();
    let file = folder.path().join(FILE);
    let text = fs::read(&file).unwrap();
    for cut in 0..=text.len() {
        fs::write(&file, &text[..cut]).unwrap();
        let mut journal = Journal::open(folder.path()).unwrap();
        let whole = lengths.iter().skip(1).filter(|&&length| length <= cut as u64).count();
        assert_eq!(journal.len(), whole, "cut at {cut}");
        journal.append(entry("next")).unwrap();
        drop(journal);
        let journal = Journal::open(folder.path()).unwrap();
        assert_eq!(journal.len(), whole + 1, "cut at {cut}");
        assert_eq!(journal.entries().last().unwrap().id, "next");
    }
}

/// A file system may leave the end of a write as zeros.
#[test]
fn journal_with_a_zeroed_end_keeps_all_whole_steps() {
    let (folder, lengths) = journal_of_three();
    let file = folder.path().join(FILE);
    let text = fs::read(&file).unwrap();
    for from in lengths[2] as usize..text.len() {
        let mut zeroed = text.clone();
        zeroed[from..].fill(0);
        fs::write(&file, &zeroed).unwrap();
        let found = Journal::open(folder.path()).unwrap().len();
        assert_eq!(found, 2, "zeroed from {from}");
    }
}

#[test]
fn damage_before_the_last_step_is_reported_and_changes_nothing() {
    let (folder, lengths) = journal_of_three();
    let file = folder.path().join(FILE);
    let text = fs::read(&file).unwrap();
    for at in 0..lengths[2] as usize {
        let mut damaged = text.clone();
        damaged[at] ^= 0x10;
        fs::write(&file, &damaged).unwrap();
        assert_eq!(Journal::open(folder.path()).unwrap_err().kind(), ErrorKind::Corrupt, "byte {at}");
        assert_eq!(fs::read(&file).unwrap(), damaged);
    }
}

#[test]
fn journal_is_open_once_and_private() {
    let (folder, _) = journal_of_three();
    let journal = Journal::open(folder.path()).unwrap();
    assert_eq!(Journal::open(folder.path()).unwrap_err().kind(), ErrorKind::Invalid);
    drop(journal);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(folder.path().join(FILE)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn debug_form_of_a_step_has_no_values() {
    let text = format!("{:?}", entry("secret"));
    assert_eq!(text, "Entry { id: \"secret\", .. }");
}
