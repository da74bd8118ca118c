use std::fmt::Debug;

/// Receives the progress of a run. All calls come from the thread that runs it.
pub trait Observer: Debug {
    /// Something happened.
    fn event(&self, event: &Event<'_>) {
        let _ = event;
    }

    /// Whether the run should end early, with an error of the kind [`Stopped`](crate::ErrorKind::Stopped). It is asked
    /// often; requests that were sent are completed.
    fn is_stopped(&self) -> bool {
        false
    }
}

/// Observes nothing.
impl Observer for () {}

/// What happens in a run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The run before this one was interrupted; this many tasks of the service have not ended.
    Waiting {
        /// The number of tasks.
        tasks: usize,
    },
    /// The folder was listed.
    Walked {
        /// The number of files that are synchronised.
        files: usize,
        /// How many of them have to be read, because they are new or changed.
        to_hash: usize,
        /// The bytes of those.
        bytes: u64,
    },
    /// A file was read to compute its digest.
    Hashed {
        /// The path in the folder.
        path: &'a str,
        /// Its size.
        bytes: u64,
    },
    /// A round of changes begins. A later round repeats what failed or changed meanwhile.
    Round {
        /// Counts from 1.
        round: usize,
        /// The number of files to send.
        files: usize,
        /// Their bytes.
        bytes: u64,
        /// The number of documents to move.
        moves: usize,
        /// The number of documents to delete.
        deletes: usize,
    },
    /// A file was accepted by the service, and waits there to be processed.
    Sent {
        /// The path in the folder.
        path: &'a str,
        /// Its size.
        bytes: u64,
    },
    /// The document of a file is visible.
    Done {
        /// The path in the folder.
        path: &'a str,
        /// Its size.
        bytes: u64,
        /// Whether the document had an earlier text.
        replaces: bool,
    },
    /// The service refused a file.
    Refused {
        /// The path in the folder.
        path: &'a str,
        /// Its size.
        bytes: u64,
        /// What the service says.
        reason: &'a str,
    },
    /// A file was not stored for another reason; it is sent again later.
    Failed {
        /// The path in the folder.
        path: &'a str,
        /// Its size, or 0 for a move or a delete.
        bytes: u64,
        /// Why.
        reason: &'a str,
    },
    /// A document follows its file.
    Moved {
        /// The path before.
        from: &'a str,
        /// The path now.
        to: &'a str,
    },
    /// The document of a path was deleted.
    Deleted {
        /// The path.
        path: &'a str,
    },
}
