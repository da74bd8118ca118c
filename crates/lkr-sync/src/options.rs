use std::time::Duration;

use crate::FolderId;

/// How a folder is synchronised.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names the service and the space, for example `http://host/ default`. Each target has a state of its own.
    pub target: String,
    /// The name of this machine, by which a folder notices that it is on another one.
    pub machine: String,
    /// The id of the folder, instead of the one that it has or would get: for folders that are made anew each time, such
    /// as checkouts. Two folders with one id replace and delete the documents of each other.
    pub id: Option<FolderId>,
    /// What a folder is of which that cannot be seen, as on another machine. Others are not affected.
    pub identity: Option<Identity>,
    /// The extensions of the files to synchronise, without a dot, in any case.
    pub extensions: Vec<String>,
    /// The most bytes of a file; larger ones are reported.
    pub max_bytes: u64,
    /// Whether files are sent again that were refused before and have not changed.
    pub retry_refused: bool,
}

/// What a folder is that was synchronised in another place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// The same folder in another place: it keeps its documents.
    Moved,
    /// A copy: it gets documents of its own, and those of the original stay.
    Copied,
}

/// How a plan is carried out.
#[derive(Debug, Clone, Copy)]
pub struct ApplyOptions {
    /// Whether documents may be deleted. Otherwise they are kept and counted.
    pub delete: bool,
    /// The number of requests at a time.
    pub parallel: usize,
    /// The most uploads whose tasks have not ended.
    pub window: usize,
}

impl Default for ApplyOptions {
    /// Deletes nothing; 8 requests at a time; 256 tasks.
    fn default() -> Self {
        Self { delete: false, parallel: 8, window: 256 }
    }
}

/// When a watched folder is synchronised.
#[derive(Debug, Clone, Copy)]
pub struct WatchOptions {
    /// How long nothing must have changed.
    pub quiet: Duration,
    /// The longest time after a change.
    pub at_most: Duration,
    /// The time after which the folder is looked through although no change was seen; network file systems report none.
    pub rescan: Duration,
}

impl Default for WatchOptions {
    /// 300 ms of quiet, 5 s at most; every ten minutes without a change.
    fn default() -> Self {
        Self {
            quiet: Duration::from_millis(300),
            at_most: Duration::from_secs(5),
            rescan: Duration::from_secs(600),
        }
    }
}
