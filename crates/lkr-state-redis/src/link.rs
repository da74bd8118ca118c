//! Connections, and the pool of them.

use std::{
    fmt,
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use deadpool::managed;
use deadpool_redis::redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _, Pipeline,
    RedisConnectionInfo, RedisError, RedisResult, TlsCertificates, TlsMode, Value,
    aio::{ConnectionLike as _, MultiplexedConnection},
    cluster::{ClusterClient, ClusterClientBuilder},
    cluster_async::ClusterConnection,
    cluster_routing::{Route, RoutingInfo, SingleNodeRoutingInfo, SlotAddr},
    cmd,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use tokio::{sync::Mutex, time::sleep};

use crate::{
    RedisConfig,
    address::{Address, Kind},
};

/// How often a request to a cluster follows a redirection, or waits for the slots to have an owner, before the caller hears of
/// it and tries again. The client's own number and pauses are made for callers that do not.
const REDIRECTIONS: u32 = 4;
const LONGEST_REDIRECTION_PAUSE_MILLIS: u64 = 50;

/// In a cluster, one node that hangs must leave the others time: a connection to the cluster connects to them all, twice.
const CLUSTER_SHARE: u32 = 3;

/// Longer than any request: each has its own limit, and this one only keeps the client's default from applying.
const NO_LIMIT: Duration = Duration::from_secs(600);

/// How long a request waits for its answer before it looks whether its connection still works.
const LOOK_AFTER: Duration = Duration::from_millis(100);

/// Makes connections. deadpool-redis makes those to a single server; its managers of sentinels and clusters have no
/// timeouts to set, so the client of redis makes those.
pub(crate) struct Links {
    target: Target,
    connect_timeout: Duration,
    /// Grows when a connection turns out to be broken: all that were made before are then replaced, without a test of each.
    generation: AtomicU64,
}

enum Target {
    Single(Box<deadpool_redis::Manager>),
    Sentinel(Box<Mutex<SentinelClient>>),
    Cluster(Box<ClusterClient>),
}

/// A connection. A request whose future is dropped leaves it usable: its driver reads the answer.
pub(crate) struct Link {
    connection: Connection,
    generation: u64,
}

enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl Links {
    /// # Errors
    /// The reason, without the URL.
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, String> {
        let address = Address::parse(&config.url)?;
        let certificates = address
            .tls
            .then(|| TlsCertificates { client_tls: None, root_cert: config.tls_authorities.clone() });
        let target = match &address.kind {
            Kind::Single => single(&address, certificates.as_ref(), config.connect_timeout),
            Kind::Sentinel(master) => sentinel(&address, master, certificates),
            Kind::Cluster => cluster(&address, certificates, config.connect_timeout),
        };
        let target = target.map_err(|error| error.to_string())?;
        Ok(Self { target, connect_timeout: config.connect_timeout, generation: AtomicU64::new(0) })
    }

    /// Whether another server may take the place of the master.
    pub(crate) const fn has_failover(&self) -> bool {
        !matches!(self.target, Target::Single(_))
    }

    /// Has all connections as old as this one replaced.
    pub(crate) fn replace(&self, link: &Link) {
        let (old, new) = (link.generation, link.generation + 1);
        let _already_replaced =
            self.generation.compare_exchange(old, new, Ordering::Relaxed, Ordering::Relaxed);
    }
}

impl managed::Manager for Links {
    type Type = Link;
    type Error = RedisError;

    async fn create(&self) -> RedisResult<Link> {
        let generation = self.generation.load(Ordering::Relaxed);
        let connection = match &self.target {
            Target::Single(manager) => Connection::Single(managed::Manager::create(&**manager).await?),
            Target::Sentinel(client) => {
                let mut client = client.lock().await;
                let made = client.get_async_connection_with_config(&limits(self.connect_timeout)).await?;
                Connection::Single(made)
            }
            Target::Cluster(client) => Connection::Cluster(client.get_async_connection().await?),
        };
        Ok(Link { connection, generation })
    }

    async fn recycle(&self, link: &mut Link, _: &managed::Metrics) -> managed::RecycleResult<RedisError> {
        if link.generation == self.generation.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(managed::RecycleError::message("the connection is too old"))
    }
}

impl Link {
    /// Sends a command to the server that has its keys.
    pub(crate) async fn send(&mut self, command: &Cmd) -> RedisResult<Value> {
        let answer = match &mut self.connection {
            Connection::Single(connection) => {
                let mut same = connection.clone();
                answer_or_end(connection.req_packed_command(command), async {
                    let ping = cmd("PING").set_no_response(true).to_owned();
                    same.req_packed_command(&ping).await.map(drop)
                })
                .await
            }
            Connection::Cluster(connection) => connection.req_packed_command(command).await,
        };
        answer.and_then(Value::extract_error)
    }

    /// Sends a command without keys to the server that has `key`.
    pub(crate) async fn send_to(&mut self, key: &str, command: Cmd) -> RedisResult<Value> {
        match &mut self.connection {
            Connection::Single(_) => self.send(&command).await,
            Connection::Cluster(connection) => {
                let routing = RoutingInfo::SingleNode(master_of(key));
                connection.route_command(command, routing).await.and_then(Value::extract_error)
            }
        }
    }

    /// Sends a command to the server that has its keys, `key` among them, and then another one to the same server on the same
    /// connection. If the first one fails, so does the call; the result of the second one is apart.
    pub(crate) async fn send_both(
        &mut self,
        key: &str,
        first: &Cmd,
        then: impl FnOnce() -> Cmd,
    ) -> RedisResult<(Value, RedisResult<Value>)> {
        match &mut self.connection {
            Connection::Single(_) => {
                let value = self.send(first).await?;
                Ok((value, self.send(&then()).await))
            }
            Connection::Cluster(connection) => {
                // Two requests might go to two servers, if another one becomes the master in between.
                let mut both = Pipeline::with_capacity(2);
                both.add_command(first.clone()).add_command(then());
                let mut answers = connection.route_pipeline(both, 0, 2, master_of(key)).await?.into_iter();
                let mut next = || answers.next().unwrap_or(Value::Nil).extract_error();
                Ok((next()?, next()))
            }
        }
    }
}

/// Waits for an answer; if it takes long, looks once whether the connection has ended.
///
/// The client hands requests over to the task of their connection on a channel. If that task ends while one is handed over, the
/// request stays in the channel for as long as the connection is held, and nobody hears of it
/// (<https://github.com/tokio-rs/tokio/pull/8278>). A second request is then refused at once. One that the task had taken over
/// ends with it.
async fn answer_or_end(
    answer: impl Future<Output = RedisResult<Value>>,
    look: impl Future<Output = RedisResult<()>>,
) -> RedisResult<Value> {
    let mut answer = pin!(answer);
    tokio::select! {
        biased;
        answer = &mut answer => return answer,
        () = sleep(LOOK_AFTER) => {}
    }
    tokio::select! {
        biased;
        answer = &mut answer => return answer,
        looked = look => looked?,
    }
    answer.await
}

/// The way to the master that has `key`.
fn master_of(key: &str) -> SingleNodeRoutingInfo {
    SingleNodeRoutingInfo::SpecificNode(Route::with_key(key, SlotAddr::Master))
}

fn single(
    address: &Address,
    certificates: Option<&TlsCertificates>,
    connect_timeout: Duration,
) -> RedisResult<Target> {
    let mut infos = infos(address)?;
    let info = infos.swap_remove(0);
    // The client reads the certificates; only their result can be given to the manager.
    let info = match certificates {
        Some(certificates) => {
            Client::build_with_tls(info, certificates.clone())?.get_connection_info().clone()
        }
        None => info,
    };
    let manager = deadpool_redis::Manager::new_with_config(info, limits(connect_timeout))?;
    Ok(Target::Single(Box::new(manager)))
}

fn sentinel(address: &Address, master: &str, certificates: Option<TlsCertificates>) -> RedisResult<Target> {
    let hosts = infos(address)?.into_iter().map(|info| info.addr().clone());
    let mut builder = SentinelClientBuilder::new(hosts, master, SentinelServerType::Master)?;
    if let Some(certificates) = certificates {
        builder = builder
            .set_client_to_redis_tls_mode(TlsMode::Secure)
            .set_client_to_sentinel_tls_mode(TlsMode::Secure);
        builder = builder
            .set_client_to_redis_certificates(certificates.clone())
            .set_client_to_sentinel_certificates(certificates);
    }
    builder = builder.set_client_to_redis_db(address.database);
    if let Some(user) = &address.user {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = &address.password {
        builder = builder.set_client_to_redis_password(password);
    }
    if let Some(user) = &address.sentinel_user {
        builder = builder.set_client_to_sentinel_username(user);
    }
    if let Some(password) = &address.sentinel_password {
        builder = builder.set_client_to_sentinel_password(password);
    }
    Ok(Target::Sentinel(Box::new(Mutex::new(builder.build()?))))
}

fn cluster(
    address: &Address,
    certificates: Option<TlsCertificates>,
    connect_timeout: Duration,
) -> RedisResult<Target> {
    let mut builder = ClusterClientBuilder::new(infos(address)?)
        .connection_timeout(connect_timeout / CLUSTER_SHARE)
        .retries(REDIRECTIONS)
        .min_retry_wait(1)
        .max_retry_wait(LONGEST_REDIRECTION_PAUSE_MILLIS)
        .response_timeout(NO_LIMIT)
        .overall_response_timeout(None);
    if let Some(certificates) = certificates {
        builder = builder.certs(certificates);
    }
    Ok(Target::Cluster(Box::new(builder.build()?)))
}

/// The addresses with the credentials of the servers.
fn infos(address: &Address) -> RedisResult<Vec<ConnectionInfo>> {
    let mut redis = RedisConnectionInfo::default().set_db(address.database);
    if let Some(user) = &address.user {
        redis = redis.set_username(user);
    }
    if let Some(password) = &address.password {
        redis = redis.set_password(password);
    }
    let info = |(host, port): &(String, u16)| {
        let (host, port) = (host.clone(), *port);
        let address = match address.tls {
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(host, port),
        };
        Ok(address.into_connection_info()?.set_redis_settings(redis.clone()))
    };
    address.hosts.iter().map(info).collect()
}

fn limits(connect_timeout: Duration) -> AsyncConnectionConfig {
    AsyncConnectionConfig::new().set_connection_timeout(Some(connect_timeout)).set_response_timeout(None)
}

impl fmt::Debug for Links {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Links").field("generation", &self.generation).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::pending, io};

    use super::*;

    #[tokio::test]
    async fn request_that_nobody_answers_ends_with_its_connection() {
        let ended = || Err(io::Error::from(io::ErrorKind::BrokenPipe).into());
        let error = answer_or_end(pending(), async { ended() }).await.unwrap_err();
        assert!(error.is_io_error(), "{error}");
    }

    #[tokio::test]
    async fn answer_is_waited_for_while_the_connection_works() {
        let late = |after| async move {
            sleep(after).await;
            Ok(Value::Okay)
        };
        for after in [Duration::ZERO, LOOK_AFTER * 2] {
            assert_eq!(answer_or_end(late(after), async { Ok(()) }).await.unwrap(), Value::Okay);
        }
        // The second request may have to wait for room in the channel.
        assert_eq!(answer_or_end(late(LOOK_AFTER * 2), pending()).await.unwrap(), Value::Okay);
    }
}
