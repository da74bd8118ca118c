//! Steps: writes that are applied once, however often they are sent.

use std::{sync::atomic::Ordering, time::Duration};

use deadpool_redis::redis::{Value, cmd};
use lkr_state::{Error, ErrorKind, Result};
use uuid::Uuid;

use crate::{
    client::{Call, RedisClient},
    error::unexpected,
    reply::{self, Reply},
    script::Script,
};

/// How much later than its sender gives up a step may be applied, because the server's clock is not known exactly.
const SLACK: Duration = Duration::from_secs(1);

impl RedisClient {
    /// Runs a script of a step. Returns the word with which its answer begins, and the rest.
    pub(crate) async fn step(
        &self,
        operation: &'static str,
        script: &'static Script,
        arguments: &[&[u8]],
        keys: fn(&crate::keys::Keys, Uuid) -> Vec<String>,
    ) -> Result<(String, Reply)> {
        loop {
            let deadline = match self.clock.after(self.write_limit(arguments).saturating_add(SLACK)) {
                Some(deadline) => deadline.to_string(),
                None => {
                    self.read_clock(operation).await?;
                    continue;
                }
            };
            let seen = self.largest_seen.load(Ordering::Relaxed).to_string();
            let first = [self.installation(), deadline.as_bytes(), seen.as_bytes()];
            let arguments = [&first, arguments].concat();
            let keys = keys(&self.keys, Uuid::new_v4());
            let answer = self.write(operation, Call { script, keys: &keys, arguments: &arguments }).await?;
            let mut reply = Reply::new(operation, answer.value)?;
            let word = reply.text()?;
            if word != "late" {
                return Ok((word, reply));
            }
            // The clock of the server jumped, or another server has taken over. Only a step of which no copy can have been
            // applied is begun again.
            self.clock.set(reply.number()?);
            if answer.follows_unknown {
                let message = "the clock of Redis jumped; whether the server applied the request is unknown";
                return Err(Error::new(ErrorKind::Unavailable, operation, message));
            }
        }
    }

    /// Reads the server's clock.
    pub(crate) async fn read_clock(&self, operation: &'static str) -> Result<()> {
        let Value::Array(parts) = self.command(operation, &cmd("TIME")).await? else {
            return unexpected(operation);
        };
        let numbers: Vec<u64> =
            parts.iter().filter_map(reply::text).filter_map(|text| text.parse().ok()).collect();
        let [seconds, micros] = numbers[..] else { return unexpected(operation) };
        self.clock.set(seconds * 1_000 + micros / 1_000);
        Ok(())
    }

    /// Notes a version or a token, so that the next ones are larger.
    pub(crate) fn note(&self, number: u64) {
        self.largest_seen.fetch_max(number, Ordering::Relaxed);
    }
}
