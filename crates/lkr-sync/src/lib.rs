#![doc = include_str!("../README.md")]

mod apply;
mod checked_file;
mod digest;
mod durable;
mod error;
mod folder;
mod folder_sync;
mod observer;
mod options;
mod path;
mod plan;
mod remote;
mod report;
mod scan;
mod state;
mod time_left;
mod transfer;
mod walk;
mod watch;
mod workers;

pub use checked_file::{CheckedFile, CheckedReader};
pub use digest::Digest;
pub use error::{Error, ErrorKind, Result};
pub use folder::Opening;
pub use folder_sync::FolderSync;
pub use observer::{Event, Observer};
pub use options::{ApplyOptions, Identity, Options, WatchOptions};
pub use plan::{Plan, PlannedDelete, PlannedMove, PlannedUpload, Reason};
pub use remote::{FILE_SHA256, Remote, RemoteDocument, TaskId, TaskState, Upload};
pub use report::{Issue, IssueKind, Report};
pub use time_left::TimeLeft;
pub use watch::{Next, Trigger};
