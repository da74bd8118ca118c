//! One attempt to send a delivery.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use lkr_domain::EventId;
use lkr_outgoing::{
    HeaderMap, Limits, Method, Request,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    retry_after,
};

use crate::{
    DeliveryOutcome, DeliveryState, Result,
    backoff::backoff,
    clock::{millis, now_ms},
    delivery::LeasedDelivery,
    delivery_log::LogEntry,
    records::{WebhookV1, secret_place},
    shared::WebhooksShared,
    signature,
};

const SIGNATURE: HeaderName = HeaderName::from_static("x-lkr-signature");
const DELIVERY: HeaderName = HeaderName::from_static("x-lkr-delivery");

/// The result of one attempt.
#[derive(Debug)]
pub(crate) struct DeliveryAttempt {
    pub(crate) event: EventId,
    pub(crate) outcome: DeliveryOutcome,
    /// Why the attempt failed, if it did.
    pub(crate) failure: Option<String>,
}

/// How the receiver responded.
struct ReceiverResponse {
    /// The status; `None` if there was no response.
    status: Option<u16>,
    /// Why the attempt failed; `None` if the receiver accepted the delivery.
    failure: Option<String>,
    /// How long the receiver asks to wait.
    retry_after: Option<Duration>,
}

impl ReceiverResponse {
    const fn missing(reason: String) -> Self {
        Self { status: None, failure: Some(reason), retry_after: None }
    }
}

/// Sends a delivery once and stores the outcome.
pub(crate) async fn attempt(
    shared: Arc<WebhooksShared>,
    webhook: WebhookV1,
    leased: LeasedDelivery,
) -> Result<DeliveryAttempt> {
    let ReceiverResponse { status, failure, retry_after } = send(&shared, &webhook, &leased).await;
    let state = &*shared.deps.state;
    let options = &shared.deps.options;
    let (now, attempts) = (now_ms(state), leased.delivery.attempts.saturating_add(1));
    let entry = |state, next_ms| LogEntry {
        state,
        attempts,
        attempted_ms: Some(now),
        status,
        error: failure.as_deref(),
        next_ms,
    };
    let expires = leased.delivery.at_ms.min(now).saturating_add(millis(options.max_age));
    let outcome = if failure.is_none() {
        leased.remove(state, &entry(DeliveryState::Delivered, None)).await?;
        DeliveryOutcome::Delivered
    } else if now >= expires {
        leased.remove(state, &entry(DeliveryState::Expired, None)).await?;
        DeliveryOutcome::Expired
    } else {
        // A receiver that asks for a short pause each time is still called less and less often.
        let delay = backoff(options, attempts).max(retry_after.unwrap_or_default());
        // However long the receiver asks to wait, the last attempt comes when the delivery expires.
        let due = now.saturating_add(millis(delay)).min(expires);
        leased.reschedule(state, due, &entry(DeliveryState::Waiting, Some(due))).await?;
        DeliveryOutcome::Retried
    };
    Ok(DeliveryAttempt { event: leased.event, outcome, failure })
}

async fn send(shared: &WebhooksShared, webhook: &WebhookV1, leased: &LeasedDelivery) -> ReceiverResponse {
    let Some(secret) = shared.deps.sealing.open(&webhook.secret, &secret_place(webhook.id)) else {
        return ReceiverResponse::missing(
            "the webhook's secret was sealed with another secret key".to_owned(),
        );
    };
    let body = &leased.delivery.body;
    let signature = signature(secret.expose(), now_ms(&*shared.deps.state) / 1000, body);
    let (Ok(signature), Ok(id)) =
        (HeaderValue::from_str(&signature), HeaderValue::from_str(&leased.event.to_string()))
    else {
        return ReceiverResponse::missing(
            "a request header has characters that HTTP does not allow".to_owned(),
        );
    };
    let options = &shared.deps.options;
    let json = HeaderValue::from_static("application/json");
    let request = Request {
        headers: HeaderMap::from_iter([(CONTENT_TYPE, json), (SIGNATURE, signature), (DELIVERY, id)]),
        body: body.clone().into(),
        // Only the status and the headers of the response are read.
        limits: Limits {
            connect: options.connect_timeout,
            total: options.timeout,
            idle: options.timeout,
            body: 0,
        },
        ..Request::new(Method::POST, &webhook.url)
    };
    match shared.deps.outgoing.send(request).await {
        Ok(response) => {
            let status = response.status.as_u16();
            let is_accepted = response.status.is_success();
            ReceiverResponse {
                status: Some(status),
                failure: (!is_accepted).then(|| format!("the receiver responded with status {status}")),
                retry_after: retry_after(&response.headers, SystemTime::now()),
            }
        }
        Err(error) => ReceiverResponse::missing(error.to_string()),
    }
}
