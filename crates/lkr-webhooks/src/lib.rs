#![doc = include_str!("../README.md")]

mod attempt;
mod backoff;
mod clock;
mod deliverer;
mod delivery;
mod error;
mod event;
mod known;
mod lane;
mod options;
mod outbox;
mod records;
mod signature;
mod skip_damaged;
mod webhook;
mod webhooks;

pub use deliverer::Deliverer;
pub use error::{Error, ErrorKind, Result};
pub use event::EventKind;
pub use options::{DeliveryOptions, DeliveryOutcome};
pub use outbox::{EventOutbox, ShowTask};
pub use signature::signature;
pub use webhook::{NewWebhook, Webhook, generate_secret};
pub use webhooks::{MOST_HOOKS, Parts, Webhooks};
