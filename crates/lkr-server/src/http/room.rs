//! The memory that large answers take together: who reads slowly holds what was made for it.

use std::{sync::Arc, time::Duration};

use actix_web::{HttpMessage, HttpRequest};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::error::{ApiError, Code};

/// Up to this size an answer needs no room.
pub(crate) const SMALL: u64 = 1024 * 1024;

/// How long an answer waits for room.
const PATIENCE: Duration = Duration::from_secs(2);

/// The memory for answers of more than a megabyte.
#[derive(Debug)]
pub(crate) struct AnswerRoom {
    bytes: Arc<Semaphore>,
    most: u32,
}

/// A share of it, which goes with the last byte of the answer.
#[derive(Debug)]
pub(super) struct Share {
    _permit: OwnedSemaphorePermit,
}

impl AnswerRoom {
    pub(crate) fn new(bytes: u32) -> Self {
        Self { bytes: Arc::new(Semaphore::new(bytes as usize)), most: bytes }
    }

    /// Waits for room for an answer to `request`, unless it has some; one that is larger than all the room has it
    /// alone.
    pub(super) async fn reserve(&self, request: &HttpRequest, bytes: u64) -> Result<(), ApiError> {
        if bytes <= SMALL || request.extensions().contains::<Share>() {
            return Ok(());
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.most);
        let permit = timeout(PATIENCE, Arc::clone(&self.bytes).acquire_many_owned(bytes)).await;
        let full =
            || ApiError::new(Code::Overloaded, "too many large answers are being sent; try again soon");
        let permit = permit.map_err(|_| full())?.map_err(|_| full())?;
        request.extensions_mut().insert(Share { _permit: permit });
        Ok(())
    }
}

impl Share {
    /// The room that was reserved for a request.
    pub(super) fn of(request: &HttpRequest) -> Option<Self> {
        request.extensions_mut().remove::<Self>()
    }
}
