//! Connects webhooks with tasks, settings and metrics.

use std::sync::Arc;

use lkr::{Task, ports::StateStore};
use lkr_outgoing::{Outgoing, Policy};
use lkr_settings::{AddressCheck, SealingKey};
use lkr_webhooks::{DeliveryOptions, Dependencies, EventOutbox, Webhooks};
use serde_json::Value;

use crate::{state::AppState, wire::tasks::TaskItem};

/// The outbox. Its events contain tasks in the form that responses have.
#[must_use]
pub fn outbox() -> EventOutbox {
    EventOutbox::new(task_json)
}

/// The webhooks in a store.
pub async fn open_webhooks(
    state: Arc<dyn StateStore>,
    sealing: SealingKey,
    outgoing: Outgoing,
    outbox: EventOutbox,
    app: &AppState,
) -> lkr_webhooks::Result<Webhooks> {
    let (options, observe) = (DeliveryOptions::default(), app.metrics.deliveries());
    Webhooks::open(Dependencies { state, sealing, outgoing, outbox, options, observe }).await
}

/// The check that the addresses of models must pass.
#[must_use]
pub fn address_check(policy: Policy) -> AddressCheck {
    Arc::new(move |address| policy.check(address).map_err(|error| error.reason()))
}

fn task_json(task: &Task) -> Value {
    // Strings and numbers always serialise.
    serde_json::to_value(TaskItem::from(task.clone())).unwrap_or_default()
}
