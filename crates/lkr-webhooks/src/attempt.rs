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
    DeliveryOutcome, Result,
    backoff::backoff,
    clock::{millis, now_ms},
    delivery::LeasedDelivery,
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
enum ReceiverResponse {
    Accepted,
    Rejected { reason: String, retry_after: Option<Duration> },
}

/// Sends a delivery once and stores the outcome.
pub(crate) async fn attempt(
    shared: Arc<WebhooksShared>,
    webhook: WebhookV1,
    leased: LeasedDelivery,
) -> Result<DeliveryAttempt> {
    let state = &*shared.deps.state;
    let options = &shared.deps.options;
    let (reason, retry_after) = match send(&shared, &webhook, &leased).await {
        ReceiverResponse::Accepted => {
            leased.remove(state).await?;
            return Ok(DeliveryAttempt {
                event: leased.event,
                outcome: DeliveryOutcome::Delivered,
                failure: None,
            });
        }
        ReceiverResponse::Rejected { reason, retry_after } => (reason, retry_after),
    };
    let now = now_ms();
    let expires = leased.delivery.at_ms.min(now).saturating_add(millis(options.max_age));
    if now >= expires {
        leased.remove(state).await?;
        return Ok(DeliveryAttempt {
            event: leased.event,
            outcome: DeliveryOutcome::Expired,
            failure: Some(reason),
        });
    }
    let delay = retry_after.unwrap_or_else(|| backoff(options, leased.delivery.attempts.saturating_add(1)));
    // However long the receiver asks to wait, the last attempt comes when the delivery expires.
    leased.reschedule(state, now.saturating_add(millis(delay)).min(expires)).await?;
    Ok(DeliveryAttempt { event: leased.event, outcome: DeliveryOutcome::Retried, failure: Some(reason) })
}

async fn send(shared: &WebhooksShared, webhook: &WebhookV1, leased: &LeasedDelivery) -> ReceiverResponse {
    let rejected = |reason: String| ReceiverResponse::Rejected { reason, retry_after: None };
    let Some(secret) = shared.deps.sealing.open(&webhook.secret, &secret_place(webhook.id)) else {
        return rejected("the webhook's secret was sealed with another secret key".to_owned());
    };
    let body = &leased.delivery.body;
    let signature = signature(secret.expose(), now_ms() / 1000, body);
    let (Ok(signature), Ok(id)) =
        (HeaderValue::from_str(&signature), HeaderValue::from_str(&leased.event.to_string()))
    else {
        return rejected("a request header has characters that HTTP does not allow".to_owned());
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
        Ok(response) if response.status.is_success() => ReceiverResponse::Accepted,
        Ok(response) => ReceiverResponse::Rejected {
            reason: format!("the receiver responded with status {}", response.status.as_u16()),
            retry_after: retry_after(&response.headers, SystemTime::now()),
        },
        Err(error) => rejected(error.to_string()),
    }
}
