//! What disturbs clients and server.

use rand::{RngExt as _, rngs::StdRng};

/// A disturbance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Disturbance {
    /// A client is killed and another one started.
    Kill,
    /// A client stands still for longer than its leases.
    Stop,
    /// The connections of a client end.
    Cut,
    /// The connections of all clients end.
    CutAll,
    /// Some answers to a client get lost.
    LoseAnswers,
    /// Copies of some requests arrive later.
    RepeatRequests,
    /// Requests of a client are delayed, or no longer.
    Delay,
    /// The server is killed and started again.
    KillServer,
    /// The server stands still.
    StopServer,
    /// The clock of a client is set.
    SetClock,
    /// The clock of the server is set.
    SetServerClock,
}

impl Disturbance {
    /// Each with its weight.
    const WEIGHTS: [(Self, u32); 11] = [
        (Self::Kill, 4),
        (Self::Stop, 4),
        (Self::Cut, 3),
        (Self::CutAll, 1),
        (Self::LoseAnswers, 6),
        (Self::RepeatRequests, 6),
        (Self::Delay, 3),
        (Self::KillServer, 1),
        (Self::StopServer, 1),
        (Self::SetClock, 2),
        (Self::SetServerClock, 3),
    ];

    pub(crate) fn random(random: &mut StdRng) -> Self {
        let all: u32 = Self::WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut drawn = random.random_range(0..all);
        for (disturbance, weight) in Self::WEIGHTS {
            if drawn < weight {
                return disturbance;
            }
            drawn -= weight;
        }
        Self::Kill
    }
}
