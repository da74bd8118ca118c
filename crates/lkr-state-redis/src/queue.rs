//! The port `TaskQueue`.

use std::{collections::HashMap, sync::Arc, time::Duration};

use async_trait::async_trait;
use deadpool_redis::redis::{Value, cmd};
use lkr_domain::TaskId;
use lkr_state::{Claim, Error, ErrorKind, Lane, Result, TaskQueue, Work};
use tokio::time::{Instant, sleep_until};

use crate::{
    client::RedisClient,
    clock::{MICRO, after, argument},
    error::unexpected,
    keys::Keys,
    reply::{self, Reply},
    script::{self, Script},
    wake::Wake,
};

/// The longest time between two looks at the queue, because the server's clock may be set meanwhile.
const LONGEST_POLL: Duration = Duration::from_secs(30);
/// The same while no wake-ups arrive.
const POLL_WITHOUT_WAKE: Duration = Duration::from_secs(1);
/// The bytes of the numbers before the flow in the entry of a task, as `queue.lua` packs them.
const ENTRY_NUMBERS: usize = 41;
/// The tasks that are read at a time to count those of each flow.
const FLOWS_PAGE: u32 = 1_000;
/// The largest cost that scripts count with; larger ones cost as much.
const LARGEST_CHARGE: u64 = 1 << 50;

/// The tasks of a store, shared by all processes that open it. Cheap to clone.
///
/// Leases end by the server's clock, and no lease ends because a process opens the queue.
#[derive(Debug, Clone)]
pub struct RedisQueue {
    client: Arc<RedisClient>,
    wake: Arc<Wake>,
}

impl RedisQueue {
    pub(crate) fn new(client: Arc<RedisClient>) -> Self {
        let wake = Arc::new(Wake::start(Arc::clone(&client)));
        Self { client, wake }
    }

    async fn step(
        &self,
        operation: &'static str,
        script: &'static Script,
        arguments: &[&[u8]],
    ) -> Result<(String, Reply)> {
        self.client.step(operation, script, arguments, Keys::queue).await
    }

    /// Runs a script on a claim. `LeaseLost` if the claim is not valid.
    async fn step_on(
        &self,
        operation: &'static str,
        script: &'static Script,
        claim: &Claim,
        duration: Option<Duration>,
    ) -> Result<()> {
        let (token, duration) = (claim.token.to_string(), duration.map(|duration| argument(duration, MICRO)));
        let mut arguments: Vec<&[u8]> = vec![claim.task.as_bytes(), token.as_bytes()];
        arguments.extend(duration.as_ref().map(|duration| duration.as_bytes()));
        let (word, _) = self.step(operation, script, &arguments).await?;
        match word.as_str() {
            "ok" => Ok(()),
            "lost" => {
                let message = format!("lease of task {} was lost", claim.task);
                Err(Error::new(ErrorKind::LeaseLost, operation, message))
            }
            _ => unexpected(operation),
        }
    }

    /// Claims a task, or returns the time until one becomes claimable; `None` if none will.
    async fn try_claim(&self, lane: Lane, lease: Duration) -> Result<Result<Claim, Option<Duration>>> {
        let lane = match lane {
            Lane::Any => "any",
            Lane::Short => "short",
            Lane::Spare => "spare",
            Lane::Long => "long",
        };
        let lease = argument(lease, MICRO);
        let (word, mut reply) =
            self.step("claim", &script::CLAIM, &[lane.as_bytes(), lease.as_bytes()]).await?;
        match word.as_str() {
            "claim" => {
                let Ok(task) = reply.bytes()?.try_into() else { return unexpected("claim") };
                let token = reply.number()?;
                self.client.note(token);
                Ok(Ok(Claim { task: TaskId::from_bytes(task), token }))
            }
            "none" => Ok(Err(reply.text()?.parse().ok().map(Duration::from_micros))),
            _ => unexpected("claim"),
        }
    }
}

#[async_trait]
impl TaskQueue for RedisQueue {
    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()> {
        let charge = work.charge().min(LARGEST_CHARGE).to_string();
        let lane = if work.is_long { "1" } else { "0" };
        let delay = argument(delay, MICRO);
        let arguments =
            [task.as_bytes(), work.flow.as_bytes(), charge.as_bytes(), lane.as_bytes(), delay.as_bytes()];
        self.step("enqueue", &script::ENQUEUE, &arguments).await?;
        self.wake.notify();
        Ok(())
    }

    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        let deadline = after(wait);
        loop {
            // Registered before the lookup, so that no wake-up between lookup and wait is missed.
            let mut woken = std::pin::pin!(self.wake.notified());
            woken.as_mut().enable();
            let next = match self.try_claim(lane, lease).await? {
                Ok(claim) => return Ok(Some(claim)),
                Err(next) => next,
            };
            let now = Instant::now();
            if now >= deadline {
                return Ok(None);
            }
            let poll = if self.wake.is_up() { LONGEST_POLL } else { POLL_WITHOUT_WAKE };
            let until = deadline.min(now + next.map_or(poll, |next| next.min(poll)));
            tokio::select! { () = woken => {}, () = sleep_until(until) => {} }
        }
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        self.step_on("heartbeat", &script::HEARTBEAT, claim, Some(lease)).await
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        self.step_on("finish", &script::FINISH, claim, None).await
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        self.step_on("retry", &script::RETRY, claim, Some(delay)).await?;
        self.wake.notify();
        Ok(())
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        let (word, _) = self.step("remove", &script::REMOVE, &[task.as_bytes()]).await?;
        Ok(word == "ok")
    }

    async fn len(&self) -> Result<u64> {
        match self.client.command("len", cmd("HLEN").arg(self.client.keys.tasks())).await? {
            Value::Int(len) => Ok(u64::try_from(len).unwrap_or_default()),
            _ => unexpected("len"),
        }
    }

    async fn flows(&self) -> Result<HashMap<String, u64>> {
        let (mut tasks, mut cursor) = (HashMap::new(), "0".to_owned());
        loop {
            let mut command = cmd("HSCAN");
            command.arg(self.client.keys.tasks()).arg(&cursor).arg("COUNT").arg(FLOWS_PAGE);
            let Value::Array(parts) = self.client.command("flows", &command).await? else {
                return unexpected("flows");
            };
            let Ok([next, page]) = <[Value; 2]>::try_from(parts) else { return unexpected("flows") };
            let mut page = Reply::new("flows", page)?;
            while page.len() > 0 {
                // A scan may give a task twice.
                let (task, entry) = (page.bytes()?, page.bytes()?);
                let Some(flow) = entry.get(ENTRY_NUMBERS..) else { return unexpected("flows") };
                tasks.insert(task, String::from_utf8_lossy(flow).into_owned());
            }
            cursor = reply::text(&next).unwrap_or_default();
            if cursor == "0" {
                break;
            }
        }
        let mut flows = HashMap::new();
        for flow in tasks.into_values() {
            *flows.entry(flow).or_default() += 1;
        }
        Ok(flows)
    }

    async fn oldest(&self) -> Result<Option<TaskId>> {
        let command = cmd("ZRANGE").arg(self.client.keys.ids()).arg(0).arg(0).to_owned();
        let mut reply = Reply::new("oldest", self.client.command("oldest", &command).await?)?;
        if reply.len() == 0 {
            return Ok(None);
        }
        let id = reply.bytes()?.try_into();
        id.map_or_else(|_| unexpected("oldest"), |id| Ok(Some(TaskId::from_bytes(id))))
    }

    async fn health(&self) -> Result<()> {
        self.client.health().await
    }
}
