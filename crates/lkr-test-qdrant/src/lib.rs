#![doc = include_str!("../README.md")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::needless_pass_by_value,
    reason = "a server for tests; all calls get their requests in the same way"
)]

mod collections;
mod filter;
mod points;
mod real;
mod search;

pub use real::RealCollections;
pub use tonic::{Code, Status};

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::Duration,
};

use qdrant_client::qdrant::{
    CreateCollection, HealthCheckReply, HealthCheckRequest, PayloadSchemaInfo, Value,
    collections_server::CollectionsServer,
    points_server::PointsServer,
    qdrant_server::{Qdrant, QdrantServer},
};
use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
};
use tonic::{
    Request, Response,
    transport::{Server, server::TcpIncoming},
};

/// A running server. It stops when it is dropped; its data stays in `data`.
#[derive(Debug)]
pub struct Loopback {
    /// What it stores.
    pub data: Data,
    /// Where it listens.
    pub address: SocketAddr,
    /// Of its own, so that stopping it ends all connections.
    runtime: Option<Runtime>,
}

/// What the server stores, shared with the test.
#[derive(Debug, Clone)]
pub struct Data(Arc<RwLock<State>>);

/// What the server stores and was asked.
#[derive(Debug)]
pub struct State {
    /// The version that it claims to be.
    pub version: String,
    /// The collections by name.
    pub collections: BTreeMap<String, Stored>,
    /// Each alias with its collection.
    pub aliases: BTreeMap<String, String>,
    /// Every write, in order.
    pub writes: Vec<Write>,
    /// The API key that requests need.
    pub api_key: Option<String>,
    /// How long calls about points wait before they are answered, as if they were work.
    pub points_delay: Duration,
    /// The answers to the next calls about points and collections, which do nothing else.
    pub refusals: VecDeque<Status>,
    /// The answer to all calls that need a shard while it is set: those about points and descriptions of collections. They do
    /// nothing else.
    pub outage: Option<Status>,
}

/// A collection.
#[derive(Debug)]
pub struct Stored {
    /// The request that created it.
    pub creation: CreateCollection,
    /// By id, as the 128-bit number of its UUID.
    pub points: BTreeMap<u128, StoredPoint>,
    /// The indexes of the payload by field.
    pub schema: HashMap<String, PayloadSchemaInfo>,
    /// The order in which terms were first stored. Qdrant adds the products of a score in it.
    pub terms: HashMap<u32, usize>,
}

/// A point.
#[derive(Debug, Clone, Default)]
pub struct StoredPoint {
    /// The payload as it was sent.
    pub payload: HashMap<String, Value>,
    /// Of length 1.
    pub dense: Option<Vec<f32>>,
    /// The weights by term.
    pub sparse: Option<BTreeMap<u32, f32>>,
}

/// A write of points or of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The name of the call.
    pub call: &'static str,
    /// Whether the answer waited until the write was applied.
    pub wait: Option<bool>,
    /// The ordering that was asked for.
    pub ordering: Option<i32>,
    /// The number of points in the request.
    pub points: usize,
}

impl Loopback {
    /// A server on a free port of the loopback interface, for callers in a runtime.
    pub async fn start() -> Self {
        Self::start_with(Data::default(), ([127, 0, 0, 1], 0).into()).await
    }

    /// A server with data of an earlier one.
    ///
    /// # Panics
    /// If the address is taken.
    pub async fn start_with(data: Data, address: SocketAddr) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let served = data.clone();
        let serving = runtime.spawn(async move {
            let listener = TcpListener::bind(address).await.unwrap();
            let address = listener.local_addr().unwrap();
            let points = PointsServer::new(served.clone()).max_decoding_message_size(usize::MAX);
            let server = Server::builder()
                .add_service(points)
                .add_service(CollectionsServer::new(served.clone()))
                .add_service(QdrantServer::new(served));
            let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
            tokio::spawn(async move { server.serve_with_incoming(incoming).await.unwrap() });
            address
        });
        let address = serving.await.unwrap();
        Self { data, address, runtime: Some(runtime) }
    }

    /// [`start`](Self::start) for callers without a runtime.
    ///
    /// # Panics
    /// If the server does not start.
    #[must_use]
    pub fn start_blocking() -> Self {
        block_on(Self::start())
    }

    /// [`stop`](Self::stop) for callers without a runtime.
    ///
    /// # Panics
    /// If the system has no thread for it.
    #[must_use]
    pub fn stop_blocking(self) -> (Data, SocketAddr) {
        block_on(self.stop())
    }

    /// [`start_with`](Self::start_with) for callers without a runtime.
    ///
    /// # Panics
    /// If the address is taken.
    #[must_use]
    pub fn start_blocking_with(data: Data, address: SocketAddr) -> Self {
        block_on(Self::start_with(data, address))
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the server with all of its connections.
    pub async fn stop(self) -> (Data, SocketAddr) {
        let (data, address) = (self.data.clone(), self.address);
        drop(self);
        while TcpStream::connect(address).await.is_ok() {}
        (data, address)
    }
}

/// Runs a future in a runtime of its own.
fn block_on<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
    let running = std::thread::spawn(|| {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(future)
    });
    running.join().unwrap()
}

impl Drop for Loopback {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Default for Data {
    fn default() -> Self {
        Self(Arc::new(RwLock::new(State {
            version: "1.19.0".to_owned(),
            collections: BTreeMap::new(),
            aliases: BTreeMap::new(),
            writes: Vec::new(),
            api_key: None,
            points_delay: Duration::ZERO,
            refusals: VecDeque::new(),
            outage: None,
        })))
    }
}

impl Data {
    /// Locks the data, to look at them or to change them.
    ///
    /// # Panics
    /// If a call panicked.
    pub fn state(&self) -> RwLockWriteGuard<'_, State> {
        self.0.write().unwrap()
    }

    /// Locks the data for a read. Others may read meanwhile: as Qdrant does, the server says that it works while it computes an answer.
    fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read().unwrap()
    }

    fn admit<T>(&self, request: Request<T>) -> Result<T, Status> {
        let expected = self.read().api_key.clone();
        let key = request.metadata().get("api-key").map(|key| key.to_str().unwrap().to_owned());
        if expected.is_some() && key != expected {
            return Err(Status::unauthenticated("Invalid API key or JWT"));
        }
        // A refusal is rare: without one, calls need not wait for each other.
        let has_refusal = !self.read().refusals.is_empty();
        match has_refusal.then(|| self.state().refusals.pop_front()).flatten() {
            Some(refusal) => Err(refusal),
            None => Ok(request.into_inner()),
        }
    }

    fn reach_shards(&self) -> Result<(), Status> {
        self.read().outage.clone().map_or(Ok(()), Err)
    }
}

impl State {
    fn stored(&self, name: &str) -> Result<&Stored, Status> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.collections.get(name).ok_or_else(|| missing(name))
    }

    fn stored_mut(&mut self, name: &str) -> Result<&mut Stored, Status> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        self.collections.get_mut(name).ok_or_else(|| missing(name))
    }
}

fn missing(collection: &str) -> Status {
    Status::not_found(format!("Not found: Collection `{collection}` doesn't exist!"))
}

#[tonic::async_trait]
impl Qdrant for Data {
    async fn health_check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckReply>, Status> {
        let version = self.read().version.clone();
        Ok(Response::new(HealthCheckReply { title: "loopback".to_owned(), version, commit: None }))
    }
}
