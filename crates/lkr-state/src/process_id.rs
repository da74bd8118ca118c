use std::{fs, io, path::PathBuf};

use tokio::task::spawn_blocking;
use uuid::Uuid;

/// The id of a process among its peers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessId {
    /// Its id, which no other process has, nor an earlier one.
    pub own: Uuid,
    /// The id of the process before it with the same data folder, which has ended.
    pub predecessor: Option<Uuid>,
}

impl ProcessId {
    /// A new id of a process without a predecessor.
    #[must_use]
    pub fn new() -> Self {
        Self { own: Uuid::new_v4(), predecessor: None }
    }

    /// A new id, which is stored in `file`. The id that is there is the predecessor's. The caller makes sure that no other
    /// process uses the file.
    ///
    /// # Errors
    /// The file cannot be read or written.
    pub async fn remembered(file: PathBuf) -> io::Result<Self> {
        let own = Uuid::new_v4();
        let exchange = move || {
            let predecessor = match fs::read_to_string(&file) {
                // A file that a crash left incomplete names nobody: that process counts as running until its record expires.
                Ok(text) => Uuid::parse_str(text.trim()).ok(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            fs::write(&file, format!("{own}\n"))?;
            Ok(Self { own, predecessor })
        };
        spawn_blocking(exchange).await.map_err(io::Error::other)?
    }
}

impl Default for ProcessId {
    fn default() -> Self {
        Self::new()
    }
}

/// What a process tells the others that work on the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// How they know it.
    pub id: ProcessId,
    /// The version of the stored format that it writes. It must be at least the store's.
    pub format: u64,
    /// Whether no other process may work on the store meanwhile, because this one keeps a part of what belongs to the records
    /// where no other can reach it.
    pub is_exclusive: bool,
}
