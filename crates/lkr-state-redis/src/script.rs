//! The scripts. The first line tells the server what a script may do: without flags it is refused before it begins if the
//! server is a replica, has too few replicas or no memory left, so no script ends halfway.

use std::sync::OnceLock;

use deadpool_redis::redis;

/// A script of the server.
pub(crate) struct Script {
    pub(crate) text: &'static str,
    hash: OnceLock<String>,
}

impl Script {
    const fn new(text: &'static str) -> Self {
        Self { text, hash: OnceLock::new() }
    }

    /// The hash by which the server knows a script that it ran before.
    pub(crate) fn hash(&self) -> &str {
        self.hash.get_or_init(|| redis::Script::new(self.text).get_hash().to_owned())
    }
}

macro_rules! scripts {
    ($($name:ident = $first_line:literal $($part:literal)*;)*) => {$(
        pub(crate) static $name: Script = Script::new(concat!(
            $first_line, "\n", $(include_str!(concat!("lua/", $part, ".lua")),)*
        ));
    )*};
}

scripts! {
    GET = "#!lua flags=no-writes" "installed" "clock" "records" "get";
    SCAN = "#!lua flags=no-writes" "installed" "clock" "records" "scan";
    SCAN_MANY = "#!lua flags=no-writes" "installed" "clock" "records" "scan_many";
    APPLY = "#!lua" "installed" "clock" "step" "records" "apply";
    SNAPSHOT_OPEN = "#!lua" "installed" "clock" "snapshot_open";
    SNAPSHOT_PAGE = "#!lua" "clock" "records" "snapshot_lease" "snapshot_page";
    SNAPSHOT_KEPT = "#!lua" "clock" "snapshot_lease" "snapshot_kept";
    SNAPSHOT_CLOSE = "#!lua flags=allow-oom" "snapshot_close";
    RESTORE = "#!lua" "clock" "records" "restore";
    INSTALL = "#!lua" "install";
    ENQUEUE = "#!lua" "installed" "clock" "step" "queue" "enqueue";
    CLAIM = "#!lua" "installed" "clock" "step" "queue" "claim";
    // What ends a task runs without free memory too, so that a full server can empty its queue.
    HEARTBEAT = "#!lua flags=allow-oom" "installed" "clock" "step" "queue" "heartbeat";
    FINISH = "#!lua flags=allow-oom" "installed" "clock" "step" "queue" "finish";
    RETRY = "#!lua flags=allow-oom" "installed" "clock" "step" "queue" "retry";
    REMOVE = "#!lua flags=allow-oom" "installed" "clock" "step" "queue" "remove";
}
