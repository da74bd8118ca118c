//! The names of the keys in Redis.

use uuid::Uuid;

/// The number of snapshots that may be open at once.
pub(crate) const SNAPSHOTS: usize = 4;

/// All keys have one hash tag, so all are in one slot of a cluster, and a script can use them together.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    tag: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { tag: format!("{{{prefix}}}:") }
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.tag)
    }

    fn all<const N: usize>(&self, names: [&str; N]) -> Vec<String> {
        names.into_iter().map(|name| self.key(name)).collect()
    }

    /// The answer of a step.
    fn step(&self, id: Uuid) -> String {
        self.key(&format!("step:{}", id.simple()))
    }

    /// The old records that the snapshot in this place needs.
    pub(crate) fn kept(&self, place: usize) -> String {
        self.key(&format!("kept:{place}"))
    }

    fn all_kept(&self) -> impl Iterator<Item = String> {
        (0..SNAPSHOTS).map(|place| self.kept(place))
    }

    pub(crate) fn meta(&self) -> Vec<String> {
        self.all(["meta"])
    }

    pub(crate) fn get(&self) -> Vec<String> {
        self.all(["meta", "records"])
    }

    pub(crate) fn scan(&self) -> Vec<String> {
        self.all(["meta", "records", "keys"])
    }

    pub(crate) fn apply(&self, step: Uuid) -> Vec<String> {
        let mut keys = self.all(["meta", "records", "keys", "expiry", "snapshots"]);
        keys.extend(self.all_kept());
        keys.push(self.step(step));
        keys
    }

    pub(crate) fn snapshot_open(&self) -> Vec<String> {
        let mut keys = self.all(["meta", "snapshots"]);
        keys.extend(self.all_kept());
        keys
    }

    pub(crate) fn snapshot_page(&self) -> Vec<String> {
        self.all(["records", "keys", "snapshots"])
    }

    pub(crate) fn snapshot_kept(&self, place: usize) -> Vec<String> {
        vec![self.key("snapshots"), self.kept(place)]
    }

    pub(crate) fn restore(&self) -> Vec<String> {
        self.all(["records", "keys", "expiry", "meta"])
    }

    pub(crate) fn queue(&self, step: Uuid) -> Vec<String> {
        let mut keys = self.all([
            "meta",
            "queue:tasks",
            "queue:ids",
            "queue:due",
            "queue:short",
            "queue:long",
            "queue:by-flow",
            "queue:idle",
            "queue:heads",
            "queue:busy",
            "queue:finish:short",
            "queue:finish:long",
            "wake",
        ]);
        keys.push(self.step(step));
        keys
    }

    pub(crate) fn tasks(&self) -> String {
        self.key("queue:tasks")
    }

    pub(crate) fn ids(&self) -> String {
        self.key("queue:ids")
    }

    /// The stream that wakes waiting claims.
    pub(crate) fn wake(&self) -> String {
        self.key("wake")
    }

    /// Any key, for commands without one that must reach the server of the keys.
    pub(crate) fn any(&self) -> String {
        self.key("meta")
    }
}
