//! The memory that large responses take together. A slow reader keeps its response in memory until it has read it.

use std::{sync::Arc, time::Duration};

use actix_web::{HttpMessage, HttpRequest};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use crate::error::{ApiError, ErrorCode};

/// Responses up to this size need no reservation.
const SMALL_RESPONSE_BYTES: u64 = 1024 * 1024;

/// How long a response waits for memory.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The memory for responses of more than a megabyte.
#[derive(Debug)]
pub(crate) struct ResponseMemory {
    bytes: Arc<Semaphore>,
    capacity: u32,
}

/// The memory of one response, released with the response's last byte.
#[derive(Debug)]
pub(super) struct MemoryReservation {
    _permit: OwnedSemaphorePermit,
}

impl ResponseMemory {
    pub(crate) fn new(bytes: u32) -> Self {
        Self { bytes: Arc::new(Semaphore::new(bytes as usize)), capacity: bytes }
    }

    /// Waits for memory for the response to `request`, unless the request has a reservation. A response that is larger
    /// than the capacity takes all of it.
    pub(super) async fn reserve(&self, request: &HttpRequest, bytes: u64) -> Result<(), ApiError> {
        if bytes <= SMALL_RESPONSE_BYTES || request.extensions().contains::<MemoryReservation>() {
            return Ok(());
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).min(self.capacity);
        let permit = timeout(RESERVE_TIMEOUT, Arc::clone(&self.bytes).acquire_many_owned(bytes)).await;
        let full = || {
            ApiError::new(ErrorCode::Overloaded, "too many large responses are being sent; try again soon")
        };
        let permit = permit.map_err(|_| full())?.map_err(|_| full())?;
        request.extensions_mut().insert(MemoryReservation { _permit: permit });
        Ok(())
    }
}

impl MemoryReservation {
    /// Takes the reservation of a request.
    pub(super) fn take_from(request: &HttpRequest) -> Option<Self> {
        request.extensions_mut().remove::<Self>()
    }
}
