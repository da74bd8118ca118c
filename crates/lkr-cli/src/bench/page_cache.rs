//! Measurements of what nobody has read lately.

use std::path::Path;

use anyhow::Result;

/// Takes the files in a folder, which no process has open, out of the memory of the system. Returns false if the system has no way
/// to do that.
#[cfg(target_os = "linux")]
pub(super) fn forget_pages(dir: &Path) -> Result<bool> {
    use std::fs::File;

    use anyhow::Context;
    use rustix::fs::{Advice, fadvise};

    use crate::collection::files_below;

    for path in files_below(dir, |_| true)? {
        let context = || format!("take {} out of memory", path.display());
        let file = File::open(&path).with_context(context)?;
        // Pages that were not written yet stay.
        file.sync_all().with_context(context)?;
        fadvise(&file, 0, None, Advice::DontNeed).with_context(context)?;
    }
    Ok(true)
}

/// Other systems have no way to do that.
#[cfg(not(target_os = "linux"))]
pub(super) fn forget_pages(_dir: &Path) -> Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgotten_files_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("store");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("data"), [7; 10_000]).unwrap();
        assert_eq!(forget_pages(folder.path()).unwrap(), cfg!(target_os = "linux"));
        assert_eq!(std::fs::read(inner.join("data")).unwrap(), [7; 10_000]);
        assert!(forget_pages(&folder.path().join("missing")).is_err() || !cfg!(target_os = "linux"));
    }
}
