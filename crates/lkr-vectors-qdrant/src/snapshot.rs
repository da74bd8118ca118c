//! Consistent copies of the store, which other writes of this process do not hold up for longer than a page.
//!
//! A copy begins while no write runs, and notes the collections and aliases. Then it reads each collection in pages, in
//! the order of ids; no write runs while a page is read. Between the pages, a write that changes a point that was not
//! read yet copies the old version first ([`Copying::preserve`]). A collection that is to be dropped is read to its end
//! before.

pub(crate) mod file;
mod preserve;
mod restore;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_domain::DocId;
use lkr_vectors::{Collection, CollectionSpec, Include};
use tokio::fs;

use self::file::{Manifest, PointsFile};
pub(crate) use self::preserve::{Changed, Copying};
use crate::{
    error::{Failure, InternalResult},
    shared::{Shared, lock},
};

/// How many points are read while writes wait.
const PAGE: usize = 256;

impl Shared {
    pub(crate) async fn write_snapshot(self: &Arc<Self>, to: &Path) -> InternalResult<()> {
        let _turn = self.snapshots.lock().await;
        refuse_existing(to).await?;
        let partial = Partial::create(to)?;
        let (manifest, copying) = self.begin_copy(&partial.folder).await?;
        let manifest = self.copy_points(manifest, copying).await?;
        manifest.write(&partial.folder).await?;
        refuse_existing(to).await?;
        partial.keep(to).await
    }

    /// Notes what there is at a moment without writes.
    async fn begin_copy<'s>(&'s self, folder: &Path) -> InternalResult<(Manifest, Registered<'s>)> {
        let _writes = self.stop_writes().await;
        let collections = self.list_collections().await?;
        let aliases = self.aliases().await?.into_iter().collect();
        let mut files = Vec::with_capacity(collections.len());
        for (at, spec) in collections.iter().enumerate() {
            files.push((spec.collection.clone(), PointsFile::create(folder, at).await?));
        }
        let copying = Arc::new(Copying::new(files));
        *lock(&self.copying) = Some(Arc::clone(&copying));
        let registered = Registered { shared: self, copying };
        Ok((Manifest::new(collections, aliases), registered))
    }

    async fn copy_points(
        &self,
        mut manifest: Manifest,
        registered: Registered<'_>,
    ) -> InternalResult<Manifest> {
        let copying = &registered.copying;
        let names: Vec<Collection> =
            manifest.specs().map(|spec: &CollectionSpec| spec.collection.clone()).collect();
        for collection in &names {
            loop {
                let _writes = self.stop_writes().await;
                if copying.copy_page(self, collection).await? {
                    break;
                }
            }
        }
        for (at, collection) in names.iter().enumerate() {
            manifest.set_points(at, copying.finish(collection).await?);
        }
        Ok(manifest)
    }
}

/// Writes stop preserving old versions when it is dropped.
struct Registered<'s> {
    shared: &'s Shared,
    copying: Arc<Copying>,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        *lock(&self.shared.copying) = None;
    }
}

/// A folder beside the snapshot's that is removed unless it is complete.
struct Partial {
    folder: PathBuf,
    is_kept: bool,
}

impl Partial {
    /// It does not wait, so that no folder can appear after this future was dropped.
    fn create(to: &Path) -> InternalResult<Self> {
        let name = to
            .file_name()
            .ok_or_else(|| Failure::invalid(format!("{} is no folder's name", to.display())))?;
        let folder = to.with_file_name(format!(".{}.{}.partial", name.to_string_lossy(), DocId::new()));
        std::fs::create_dir(&folder)?;
        Ok(Self { folder, is_kept: false })
    }

    async fn keep(mut self, to: &Path) -> InternalResult<()> {
        fs::rename(&self.folder, to).await?;
        self.is_kept = true;
        let parent = to.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(fs::File::open(parent).await?.sync_all().await?)
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.is_kept {
            let _removed_or_left = std::fs::remove_dir_all(&self.folder);
        }
    }
}

async fn refuse_existing(to: &Path) -> InternalResult<()> {
    match fs::symlink_metadata(to).await {
        Ok(_) => Err(Failure::invalid(format!("{} exists", to.display()))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Everything of a point is copied.
const WITH: Include = Include::All;
