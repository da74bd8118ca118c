//! Texts in a folder that notices when the folder is moved, removed or unmounted. [`LocalFileSystem`] alone would make it anew for
//! the next text, and tell that all others are missing.

use std::{fmt, io, path::Path as FilePath};

use async_trait::async_trait;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use lkr_store_lmdb::OpenFile;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, local::LocalFileSystem, path::Path,
};

/// The files of a folder, as long as it is in its place.
#[derive(Debug)]
pub(crate) struct FolderBlobs {
    files: LocalFileSystem,
    folder: OpenFile,
}

impl FolderBlobs {
    /// Those of a folder that exists.
    ///
    /// # Errors
    /// That it cannot be read.
    pub(crate) fn open(folder: &FilePath) -> Result<Self> {
        let files = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true).with_automatic_cleanup(false);
        let folder = OpenFile::at(folder.to_owned()).map_err(generic)?;
        Ok(Self { files, folder })
    }

    /// Fails if another folder, or none, is at the path now.
    fn verify(&self) -> Result<()> {
        self.folder.verify().map_err(generic)
    }
}

fn generic(source: io::Error) -> object_store::Error {
    object_store::Error::Generic { store: "folder", source: source.into() }
}

impl fmt::Display for FolderBlobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.folder.path().display())
    }
}

#[async_trait]
impl ObjectStore for FolderBlobs {
    async fn put_opts(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.verify()?;
        self.files.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.verify()?;
        self.files.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let got = self.files.get_opts(path, options).await;
        // A file of another folder is not the one that was asked for, and one that is missing there may exist.
        self.verify()?;
        got
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        match self.verify() {
            Ok(()) => self.files.delete_stream(paths),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        match self.verify() {
            Ok(()) => self.files.list(prefix),
            Err(error) => stream::once(async { Err(error) }).boxed(),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.verify()?;
        self.files.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.verify()?;
        self.files.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use object_store::{Error, ObjectStoreExt as _};

    use super::*;

    #[tokio::test]
    async fn folder_that_is_away_is_neither_empty_nor_made_anew() {
        let parent = tempfile::tempdir().unwrap();
        let [folder, elsewhere] = ["texts", "elsewhere"].map(|name| parent.path().join(name));
        fs::create_dir(&folder).unwrap();
        let blobs = FolderBlobs::open(&folder).unwrap();
        let [one, two] = ["a/one", "a/two"].map(Path::from);
        blobs.put(&one, "1".into()).await.unwrap();
        fs::rename(&folder, &elsewhere).unwrap();
        for is_replaced in [false, true] {
            if is_replaced {
                fs::create_dir(&folder).unwrap();
            }
            let failures = [
                blobs.put(&two, "2".into()).await.err(),
                blobs.get(&one).await.err(),
                blobs.head(&one).await.err(),
                blobs.delete(&one).await.err(),
                blobs.list(None).next().await.unwrap().err(),
                blobs.copy(&one, &two).await.err(),
            ];
            for failure in failures {
                let failure = failure.unwrap();
                assert!(matches!(failure, Error::Generic { .. }), "{failure}");
                assert!(failure.to_string().contains("was moved, removed or replaced"), "{failure}");
            }
            assert_eq!(folder.exists(), is_replaced);
        }
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        fs::remove_dir(&folder).unwrap();
        fs::rename(&elsewhere, &folder).unwrap();
        blobs.put(&two, "2".into()).await.unwrap();
        let read = blobs.get(&one).await.unwrap().bytes().await.unwrap();
        assert_eq!(&read[..], b"1");
    }
}
