//! The memory that large responses take together. A slow reader keeps its response in memory until it has read it. Each client has a
//! share, so that one that reads slowly leaves memory for others.

use std::{sync::Arc, time::Duration};

use actix_web::{HttpMessage, HttpRequest};
use tokio::{sync::Notify, time::timeout};

use super::client_quota::{Client, ClientQuota, QuotaLimits, QuotaShare};
use crate::error::{ApiError, ErrorCode};

/// Responses up to this size need no reservation.
const SMALL_RESPONSE_BYTES: u64 = 1024 * 1024;

/// How long a response waits for memory.
const RESERVE_TIMEOUT: Duration = Duration::from_secs(2);

/// The limits of the memory of responses. Accounts and anonymous clients have the same, because both read documents. See
/// docs/studies.md#limits-by-client.
const RESPONSE_LIMITS: QuotaLimits = QuotaLimits {
    accounts: 128 * 1024 * 1024,
    per_account: 64 * 1024 * 1024,
    anonymous: 128 * 1024 * 1024,
    per_address: 64 * 1024 * 1024,
};

/// The memory for responses of more than a megabyte.
#[derive(Debug)]
pub(crate) struct ResponseMemory {
    quota: Arc<ClientQuota>,
    limits: QuotaLimits,
    released: Arc<Notify>,
}

/// The memory of one response, released with the response's last byte.
#[derive(Debug)]
pub(super) struct MemoryReservation {
    /// Dropped first, so that those who are woken find its memory.
    _share: QuotaShare,
    _waker: Waker,
}

/// Wakes the responses that wait for memory when it is dropped.
#[derive(Debug)]
struct Waker(Arc<Notify>);

impl Drop for Waker {
    fn drop(&mut self) {
        self.0.notify_waiters();
    }
}

impl Default for ResponseMemory {
    fn default() -> Self {
        Self::new(RESPONSE_LIMITS)
    }
}

impl ResponseMemory {
    fn new(limits: QuotaLimits) -> Self {
        Self { quota: ClientQuota::new(limits), limits, released: Arc::default() }
    }

    /// Waits for memory for the response to `request` of a client, unless the request has a reservation. A response that is larger
    /// than the share of a client takes all of it.
    pub(super) async fn reserve(
        &self,
        request: &HttpRequest,
        client: &Client,
        bytes: u64,
    ) -> Result<(), ApiError> {
        if bytes <= SMALL_RESPONSE_BYTES || request.extensions().contains::<MemoryReservation>() {
            return Ok(());
        }
        let full = |_| {
            ApiError::new(ErrorCode::Overloaded, "too many large responses are being sent; try again soon")
        };
        let reservation = timeout(RESERVE_TIMEOUT, self.wait(client, bytes)).await.map_err(full)?;
        request.extensions_mut().insert(reservation);
        Ok(())
    }

    /// Waits until the limits leave memory for a response.
    async fn wait(&self, client: &Client, bytes: u64) -> MemoryReservation {
        let limit = match client {
            Client::Account(_) => self.limits.per_account,
            Client::Address(_) => self.limits.per_address,
        };
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(limit);
        let mut share = self.quota.share(client.clone());
        loop {
            // It also tells of memory that is released before it is awaited.
            let released = self.released.notified();
            if share.grow_to(bytes) {
                return MemoryReservation { _share: share, _waker: Waker(Arc::clone(&self.released)) };
            }
            released.await;
        }
    }
}

impl MemoryReservation {
    /// Takes the reservation of a request.
    pub(super) fn take_from(request: &HttpRequest) -> Option<Self> {
        request.extensions_mut().remove::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    const MIB: u64 = 1024 * 1024;

    /// Reserves memory for a response, and keeps the request that has it.
    async fn reserved(memory: &ResponseMemory, client: &Client, bytes: u64) -> Option<HttpRequest> {
        let request = TestRequest::default().to_http_request();
        memory.reserve(&request, client, bytes).await.ok().map(|()| request)
    }

    #[tokio::test(start_paused = true)]
    async fn large_responses_of_a_client_leave_memory_for_others() {
        let memory = ResponseMemory::default();
        let [one, other] = ["a", "b"].map(|id| Client::Account(id.to_owned()));
        let first = reserved(&memory, &one, 40 * MIB).await.unwrap();
        assert!(reserved(&memory, &one, 40 * MIB).await.is_none());
        // A small response and that of another client wait for nothing.
        assert!(reserved(&memory, &one, MIB).await.is_some());
        let largest = reserved(&memory, &other, 900 * MIB).await.unwrap();
        assert!(reserved(&memory, &Client::anonymous(None), 60 * MIB).await.is_some());
        let (second, ()) = tokio::join!(reserved(&memory, &one, 40 * MIB), async {
            tokio::time::sleep(RESERVE_TIMEOUT / 2).await;
            drop(MemoryReservation::take_from(&first));
        });
        assert!(second.is_some());
        drop(MemoryReservation::take_from(&largest));
        assert!(reserved(&memory, &other, 60 * MIB).await.is_some());
    }
}
