#![doc = include_str!("../README.md")]

mod attempt;
mod backlog;
mod backoff;
mod clock;
mod create_deliveries;
mod deliverer;
mod delivery;
mod delivery_log;
mod error;
mod event;
mod options;
mod outbox;
mod records;
mod shared;
mod signature;
mod skip_damaged_scan;
mod subscriptions;
mod webhook;
mod webhooks;

pub use deliverer::Deliverer;
pub use delivery_log::{DeliveryState, LoggedDelivery, MAX_LOGGED};
pub use error::{Error, ErrorKind, Result};
pub use event::EventKind;
pub use options::{DeliveryOptions, DeliveryOutcome};
pub use outbox::{EventOutbox, RenderTask};
pub use shared::Dependencies;
pub use signature::signature;
pub use webhook::{NewWebhook, Webhook, generate_secret};
pub use webhooks::{MAX_WEBHOOKS, Webhooks};
