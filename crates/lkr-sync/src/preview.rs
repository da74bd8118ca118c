use std::path::Path;

use crate::{FolderSync, Observer, Opening, Options, Plan, Remote, Result};

/// What a run would do. Nothing is written to the folder, which may be read-only, and it is not locked: a run at the
/// same time is neither noticed nor hindered.
#[derive(Debug)]
pub struct Preview(FolderSync);

impl Preview {
    /// Reads what is known about a folder. It is found as by [`FolderSync::open`], with the same options; only an id
    /// that it would get is another one each time.
    pub fn open(folder: &Path, options: Options) -> Result<Self> {
        FolderSync::inspect(folder, options).map(Self)
    }

    /// How the folder was found.
    #[must_use]
    pub fn opening(&self) -> &Opening {
        self.0.opening()
    }

    /// The canonical path of the folder.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.0.root()
    }

    /// Compares the folder with its documents, like [`FolderSync::plan`].
    pub fn plan(&mut self, remote: &dyn Remote, observer: &dyn Observer) -> Result<Plan> {
        self.0.plan(remote, observer)
    }
}
