use std::{
    fs::File,
    io,
    ops::Range,
    path::{Path as FilePath, PathBuf},
    pin::pin,
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use lkr_domain::{DocId, last_component};
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{
    Error, ErrorKind, Result,
    blob::{delete, put_file},
    verified,
};

/// The files as they were sent, by path.
#[derive(Debug, Clone)]
pub struct Originals {
    place: Place,
}

#[derive(Debug, Clone)]
enum Place {
    /// A folder, which is made when the first file comes.
    Folder(PathBuf),
    Blobs(Arc<dyn ObjectStore>),
}

/// A file that is stored.
#[derive(Debug, Clone)]
pub struct StoredOriginal {
    blobs: Arc<dyn ObjectStore>,
    path: Path,
    /// Its length in bytes.
    pub size_bytes: u64,
}

impl Originals {
    /// Originals in a folder, which is made when the first one comes. Symbolic links below it are not followed.
    #[must_use]
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { place: Place::Folder(folder) }
    }

    /// Originals on a blob store. What it answers to a `put` must be durable.
    #[must_use]
    pub const fn on(blobs: Arc<dyn ObjectStore>) -> Self {
        Self { place: Place::Blobs(blobs) }
    }

    /// Stores the first `length` bytes of a file under a path that [`original_path`] made; durable when it answers
    /// its SHA-256.
    pub async fn put(&self, path: &str, file: &File, length: u64) -> Result<String> {
        let path = parse(path)?;
        if let Place::Folder(folder) = &self.place {
            tokio::fs::create_dir_all(folder).await.map_err(|e| Error::blob("make the upload folder", e))?;
        }
        let blobs = self.reach(&path).await?.ok_or_else(outside)?;
        put_file(&blobs, &path, file, 0..length).await
    }

    /// A stored file; `None` where there is none, or the path leads elsewhere than below the place of originals.
    pub async fn get(&self, path: &str) -> Result<Option<StoredOriginal>> {
        let Ok(path) = parse(path) else { return Ok(None) };
        let Some(blobs) = self.reach(&path).await? else { return Ok(None) };
        if !self.is_file(&path).await {
            return Ok(None);
        }
        match blobs.head(&path).await {
            Ok(meta) => Ok(Some(StoredOriginal { blobs, path, size_bytes: meta.size })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file, also one that was stored in part; nothing where there is none.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let Ok(path) = parse(path) else { return Ok(()) };
        let Some(blobs) = self.reach(&path).await? else { return Ok(()) };
        delete(&blobs, &path).await?;
        match &self.place {
            Place::Folder(folder) => {
                let file = on_disk(folder, &path);
                let removed = tokio::task::spawn_blocking(move || remove_half_written(&file)).await;
                removed
                    .map_err(|e| Error::blob("remove a file", e))?
                    .map_err(|e| Error::blob("remove a file", e))
            }
            Place::Blobs(_) => Ok(()),
        }
    }

    /// The paths of all files that are stored as [`original_path`] and [`replaced_path`] would have them.
    pub async fn stored(&self) -> Result<Vec<String>> {
        let blobs: Arc<dyn ObjectStore> = match &self.place {
            Place::Blobs(blobs) => Arc::clone(blobs),
            Place::Folder(folder) if folder.is_dir() => Arc::new(LocalFileSystem::new_with_prefix(folder)?),
            Place::Folder(_) => return Ok(Vec::new()),
        };
        let mut stored = Vec::new();
        let mut list = blobs.list(None);
        while let Some(meta) = list.try_next().await? {
            stored.extend(Some(meta.location.as_ref().to_owned()).filter(|path| is_ours(path)));
        }
        Ok(stored)
    }

    /// Whether what a folder holds there is a file; anything that a blob store holds is one.
    async fn is_file(&self, path: &Path) -> bool {
        match &self.place {
            Place::Blobs(_) => true,
            Place::Folder(folder) => {
                let meta = tokio::fs::symlink_metadata(on_disk(folder, path)).await;
                meta.is_ok_and(|meta| meta.is_file())
            }
        }
    }

    /// The store that holds `path`; `None` where there is none, or a link leads out of the folder.
    async fn reach(&self, path: &Path) -> Result<Option<Arc<dyn ObjectStore>>> {
        let folder = match &self.place {
            Place::Blobs(blobs) => return Ok(Some(Arc::clone(blobs))),
            Place::Folder(folder) => folder.clone(),
        };
        let path = path.clone();
        let reached = tokio::task::spawn_blocking(move || {
            if !folder.exists() || has_link(&folder, &path) {
                return Ok(None);
            }
            let blobs = LocalFileSystem::new_with_prefix(&folder)?;
            let blobs: Arc<dyn ObjectStore> = Arc::new(blobs.with_fsync(true).with_automatic_cleanup(false));
            Ok::<_, object_store::Error>(Some(blobs))
        });
        Ok(reached.await.map_err(|e| Error::blob("open the upload folder", e))??)
    }
}

impl StoredOriginal {
    /// The bytes of a range of it, as they come from the store.
    pub async fn read(
        &self,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        // A store refuses a range of nothing.
        if range.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        let got = self.blobs.get_opts(&self.path, options).await?;
        Ok(got.into_stream().map_err(io::Error::other).boxed())
    }
}

impl StoredOriginal {
    /// Reads all of it, and refuses it where its SHA-256 is not this: before a part is shown, of which that cannot be told.
    pub async fn check(&self, sha256: Option<&str>) -> Result<()> {
        let Some(sha256) = sha256 else { return Ok(()) };
        let all = pin!(self.whole(Some(sha256)).await?);
        let checked = all.try_for_each(|_| async { Ok(()) }).await;
        checked.map_err(|error| Error::corrupt("read a file", error))
    }

    /// All bytes of it. Those whose SHA-256 is not this end with an error.
    pub async fn whole(
        &self,
        sha256: Option<&str>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let parts = self.read(0..self.size_bytes).await?;
        Ok(verified::parts(parts, sha256.map(str::to_owned), format!("the file {}", self.path)))
    }
}

/// Where the original of a document is stored: `<YYYY>/<MM>/<doc_id>_<name>`, with year and month in UTC.
#[must_use]
pub fn original_path(doc_id: DocId, file_name: &str, at: OffsetDateTime) -> String {
    by_month(at, &format!("{doc_id}_{}", stored_name(file_name)))
}

/// Where the original that replaces a document's is stored: like the first one, and apart from it and all others, as
/// `<YYYY>/<MM>/<doc_id>_<8 hex>_<name>`.
#[must_use]
pub fn replaced_path(doc_id: DocId, file_name: &str, at: OffsetDateTime) -> String {
    let (apart, _, _, _) = Uuid::new_v4().as_fields();
    by_month(at, &format!("{doc_id}_{apart:08x}_{}", stored_name(file_name)))
}

fn by_month(at: OffsetDateTime, name: &str) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    format!("{:04}/{:02}/{name}", at.year(), u8::from(at.month()))
}

/// The longest name of a stored file in bytes, what stands before it not counted.
const MAX_NAME_BYTES: usize = 180;

/// The longest suffix that is kept where a name is cut.
const MAX_SUFFIX_BYTES: usize = 20;

/// What is left of a file's name before it touches a disk or a header: its last component, without control
/// characters, marks that turn the direction of writing, and leading dots, of at most 180 bytes.
#[must_use]
pub fn stored_name(file_name: &str) -> String {
    let last = last_component(file_name).trim();
    let name: String = last.chars().map(|c| if is_unfit(c) { '_' } else { c }).collect();
    let dots = name.len() - name.trim_start_matches('.').len();
    let name = ["_".repeat(dots).as_str(), name.trim_start_matches('.')].concat();
    match name.is_empty() {
        true => "unnamed".to_owned(),
        false => cut(&name),
    }
}

fn is_unfit(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Cuts a name in its middle, so that its suffix stays.
fn cut(name: &str) -> String {
    if name.len() <= MAX_NAME_BYTES {
        return name.to_owned();
    }
    let suffix = name.rfind('.').and_then(|dot| name.get(dot..));
    let suffix = suffix.filter(|suffix| suffix.len() <= MAX_SUFFIX_BYTES).unwrap_or_default();
    let end = name.floor_char_boundary(MAX_NAME_BYTES - suffix.len());
    [name.get(..end).unwrap_or_default(), suffix].concat()
}

/// Whether a path is one that this module makes.
fn is_ours(path: &str) -> bool {
    let parts: Vec<&str> = path.split('/').collect();
    let digits = |text: &str, length| text.len() == length && text.bytes().all(|b| b.is_ascii_digit());
    matches!(&*parts, [year, month, name] if digits(year, 4) && digits(month, 2)
        && name.split_once('_').is_some_and(|(id, _)| id.parse::<DocId>().is_ok()))
}

fn parse(path: &str) -> Result<Path> {
    let wrong = |reason: String| Error::new(ErrorKind::Corrupt, "read the path of an original", reason);
    let path = Path::parse(path).map_err(|error| wrong(error.to_string()))?;
    if path.as_ref().is_empty() { Err(wrong("it is empty".to_owned())) } else { Ok(path) }
}

fn outside() -> Error {
    Error::new(ErrorKind::Internal, "store a file", "a symbolic link leads out of the upload folder")
}

fn on_disk(folder: &FilePath, path: &Path) -> PathBuf {
    folder.join(path.as_ref())
}

/// Whether a symbolic link stands somewhere on the way from the folder to the file.
fn has_link(folder: &FilePath, path: &Path) -> bool {
    let mut way = folder.to_owned();
    path.as_ref().split('/').any(|part| {
        way.push(part);
        way.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
    })
}

/// Removes what a process that ended midway had written of a file: it lies under the file's name, `#` and a number.
fn remove_half_written(file: &FilePath) -> io::Result<()> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return Ok(()) };
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let prefix = format!("{}#", name.to_string_lossy());
    for entry in entries.flatten() {
        let entry_name = entry.file_name().to_string_lossy().into_owned();
        let number = entry_name.strip_prefix(&prefix);
        if number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use futures_util::TryStreamExt;
    use time::macros::datetime;

    use super::*;

    async fn put(originals: &Originals, path: &str, bytes: &[u8]) -> Result<()> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        originals.put(path, &file, bytes.len() as u64).await.map(drop)
    }

    async fn read(original: &StoredOriginal, range: Range<u64>) -> Vec<u8> {
        let parts: Vec<Bytes> = original.read(range).await.unwrap().try_collect().await.unwrap();
        parts.concat()
    }

    #[test]
    fn lesson_25_names_are_reduced() {
        for (name, stored) in [
            ("report.pdf", "report.pdf"),
            ("../../etc/passwd.txt", "passwd.txt"),
            ("C:\\temp\\a b.txt", "a b.txt"),
            ("..", "__"),
            (".htaccess.txt", "_htaccess.txt"),
            ("...x.txt", "___x.txt"),
            ("a\0b\r\nc.txt", "a_b__c.txt"),
            ("invoice\u{202e}fdp.txt", "invoice_fdp.txt"),
            ("Übung #1 [neu] 50%?.txt", "Übung #1 [neu] 50%?.txt"),
            ("dir/", "unnamed"),
            ("", "unnamed"),
        ] {
            assert_eq!(stored_name(name), stored, "{name:?}");
        }
        let long = format!("{}.docx", "é".repeat(300));
        let stored = stored_name(&long);
        assert!(stored.len() <= MAX_NAME_BYTES && stored.ends_with("é.docx"), "{stored}");
        assert!(stored_name(&"x.".repeat(300)).len() <= MAX_NAME_BYTES);
    }

    #[test]
    fn paths_tell_when() {
        let id: DocId = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let path = original_path(id, "a/b.txt", datetime!(2026-12-31 23:30 -2));
        assert_eq!(path, "2027/01/0123456789abcdef0123456789abcdef_b.txt");
    }

    #[tokio::test]
    async fn files_come_back_whole_and_in_part() {
        let folder = tempfile::tempdir().unwrap();
        let originals = Originals::in_folder(folder.path().join("uploads"));
        assert!(originals.get("2026/11/a.txt").await.unwrap().is_none());
        let name = "2026/11/0_Übung #1 [neu] 50%?.txt";
        put(&originals, name, b"0123456789").await.unwrap();
        assert_eq!(std::fs::read(folder.path().join("uploads").join(name)).unwrap(), b"0123456789");
        let original = originals.get(name).await.unwrap().unwrap();
        assert_eq!(original.size_bytes, 10);
        assert_eq!(read(&original, 0..10).await, b"0123456789");
        assert_eq!(read(&original, 3..5).await, b"34");
        originals.delete(name).await.unwrap();
        originals.delete(name).await.unwrap();
        assert!(originals.get(name).await.unwrap().is_none());
    }

    #[tokio::test]
    async fn what_was_stored_in_part_goes_too() {
        let folder = tempfile::tempdir().unwrap();
        let originals = Originals::in_folder(folder.path().to_owned());
        let month = folder.path().join("2026/11");
        std::fs::create_dir_all(&month).unwrap();
        for name in ["a.txt#1", "a.txt#x", "a.txt#", "b.txt#1"] {
            std::fs::write(month.join(name), "half").unwrap();
        }
        originals.delete("2026/11/a.txt").await.unwrap();
        let mut left: Vec<_> = std::fs::read_dir(month).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["a.txt#", "a.txt#x", "b.txt#1"]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn lesson_25_links_are_not_followed() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let originals = Originals::in_folder(folder.path().to_owned());
        std::fs::write(elsewhere.path().join("secret.txt"), "secret").unwrap();
        std::fs::create_dir(folder.path().join("2026")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("2026/11")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join("secret.txt"), folder.path().join("link.txt"))
            .unwrap();
        for path in ["2026/11/secret.txt", "link.txt", "../secret.txt", "2026/../link.txt", ""] {
            assert!(originals.get(path).await.unwrap().is_none(), "{path}");
            originals.delete(path).await.unwrap();
        }
        assert!(put(&originals, "2026/11/new.txt", b"x").await.is_err());
        assert_eq!(std::fs::read_dir(elsewhere.path()).unwrap().count(), 1);
    }

    #[tokio::test]
    async fn a_month_that_is_no_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("2026")).unwrap();
        std::fs::write(folder.path().join("2026/11"), "a file").unwrap();
        let originals = Originals::in_folder(folder.path().to_owned());
        for length in [1, 6 * 1024 * 1024] {
            let error = put(&originals, "2026/11/a.txt", &vec![7; length]).await.unwrap_err();
            assert!(error.is_retryable(), "{error}");
        }
        assert!(originals.get("2026/11/a.txt").await.unwrap().is_none());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_is_no_file_is_not_found() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("2026/11/a.txt")).unwrap();
        let originals = Originals::in_folder(folder.path().to_owned());
        assert!(originals.get("2026/11/a.txt").await.unwrap().is_none());
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_made_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let taken = folder.path().join("file");
        std::fs::write(&taken, "x").unwrap();
        let originals = Originals::in_folder(taken);
        let error = put(&originals, "2026/11/a.txt", b"x").await.unwrap_err();
        assert!(error.is_retryable(), "{error}");
    }
}
