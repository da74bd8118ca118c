#![doc = include_str!("../README.md")]

mod attempt;
mod backoff;
mod clock;
mod deliverer;
mod delivery;
mod error;
mod event;
mod hook;
mod known;
mod lane;
mod options;
mod outbox;
mod past_damage;
mod records;
mod signature;
mod webhooks;

pub use deliverer::Deliverer;
pub use error::{Error, ErrorKind, Result};
pub use event::EventKind;
pub use hook::{Hook, NewHook, generate_secret};
pub use options::{DeliveryOptions, Outcome};
pub use outbox::{EventOutbox, ShowTask};
pub use signature::signature;
pub use webhooks::{MOST_HOOKS, Parts, Webhooks};
