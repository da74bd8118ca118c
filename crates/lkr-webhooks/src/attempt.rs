//! One try of a delivery.

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
    backoff::wait,
    clock::{millis, now_ms},
    delivery::Taken,
    records::{HookV1, secret_place},
    signature,
    webhooks::Inner,
};

const SIGNATURE: HeaderName = HeaderName::from_static("x-lkr-signature");
const DELIVERY: HeaderName = HeaderName::from_static("x-lkr-delivery");

/// What came of a try.
#[derive(Debug)]
pub(crate) struct Tried {
    /// What was to be told.
    pub(crate) event: EventId,
    pub(crate) outcome: DeliveryOutcome,
    /// Why it failed, where it did.
    pub(crate) failure: Option<String>,
}

/// What the receiver said.
enum Said {
    Yes,
    No { reason: String, wait: Option<Duration> },
}

/// Sends a delivery once, and puts down what came of it.
pub(crate) async fn attempt(inner: Arc<Inner>, hook: HookV1, taken: Taken) -> Result<Tried> {
    let state = &*inner.parts.state;
    let options = &inner.parts.options;
    let (reason, asked) = match send(&inner, &hook, &taken).await {
        Said::Yes => {
            taken.finish(state).await?;
            return Ok(Tried { event: taken.event, outcome: DeliveryOutcome::Delivered, failure: None });
        }
        Said::No { reason, wait } => (reason, wait),
    };
    let now = now_ms();
    let end = taken.delivery.at_ms.min(now).saturating_add(millis(options.keep));
    if now >= end {
        taken.finish(state).await?;
        return Ok(Tried { event: taken.event, outcome: DeliveryOutcome::Expired, failure: Some(reason) });
    }
    let pause = asked.unwrap_or_else(|| wait(options, taken.delivery.attempts.saturating_add(1)));
    // There is one more try at the end of the time, however long the receiver asks to be left alone.
    taken.give_back(state, now.saturating_add(millis(pause)).min(end)).await?;
    Ok(Tried { event: taken.event, outcome: DeliveryOutcome::Retried, failure: Some(reason) })
}

async fn send(inner: &Inner, hook: &HookV1, taken: &Taken) -> Said {
    let no = |reason: String| Said::No { reason, wait: None };
    let Some(secret) = inner.parts.sealing.open(&hook.secret, &secret_place(hook.id)) else {
        return no("its secret cannot be opened: another secret key is in force".to_owned());
    };
    let body = &taken.delivery.body;
    let signed = signature(secret.expose(), now_ms() / 1000, body);
    let (Ok(signed), Ok(id)) =
        (HeaderValue::from_str(&signed), HeaderValue::from_str(&taken.event.to_string()))
    else {
        return no("a header cannot be written".to_owned());
    };
    let options = &inner.parts.options;
    let json = HeaderValue::from_static("application/json");
    let request = Request {
        headers: HeaderMap::from_iter([(CONTENT_TYPE, json), (SIGNATURE, signed), (DELIVERY, id)]),
        body: body.clone().into(),
        // What a receiver has to say besides its status is not read.
        limits: Limits { connect: options.connect, whole: options.timeout, idle: options.timeout, body: 0 },
        ..Request::new(Method::POST, &hook.url)
    };
    match inner.parts.outgoing.send(request).await {
        Ok(answer) if answer.status.is_success() => Said::Yes,
        Ok(answer) => {
            let wait = retry_after(&answer.headers, SystemTime::now());
            Said::No { reason: format!("the receiver answers {}", answer.status.as_u16()), wait }
        }
        Err(error) => no(error.to_string()),
    }
}
