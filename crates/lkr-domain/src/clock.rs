//! Where times and new ids come from.

use std::fmt;

use time::OffsetDateTime;
use uuid::Uuid;

/// A source of times and of new ids, which begin with their time of creation.
///
/// Answers contain both, so a test that compares the answers of two services gives them clocks that agree.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present time.
    fn now(&self) -> OffsetDateTime;

    /// A new version 7 UUID, greater than all that this clock made before.
    fn new_uuid(&self) -> Uuid;
}

/// The clock of the system, with ids that are partly random.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc()
    }

    fn new_uuid(&self) -> Uuid {
        Uuid::now_v7()
    }
}
