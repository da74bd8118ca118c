//! A server in this process that speaks Qdrant's protocol. It decodes the real messages and interprets them on points of
//! its own: filters on the payloads as they were sent, scores on the vectors as they were sent.
#![expect(clippy::needless_pass_by_value, reason = "all calls get their requests in the same way")]

mod collections;
mod filter;
mod points;
mod search;

use std::{
    collections::{BTreeMap, HashMap},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard},
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
    Request, Response, Status,
    transport::{Server, server::TcpIncoming},
};

/// A running server. It stops when it is dropped; its data stays in `data`.
#[derive(Debug)]
pub(crate) struct Loopback {
    pub(crate) data: Data,
    pub(crate) address: SocketAddr,
    /// Of its own, so that stopping it ends all connections.
    runtime: Option<Runtime>,
}

/// What the server stores, shared with the test.
#[derive(Debug, Clone)]
pub(crate) struct Data(Arc<Mutex<State>>);

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) version: String,
    pub(crate) collections: BTreeMap<String, Stored>,
    /// Each alias with its collection.
    pub(crate) aliases: BTreeMap<String, String>,
    /// Every write, in order.
    pub(crate) writes: Vec<Write>,
    /// The API key that requests need.
    pub(crate) api_key: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) creation: CreateCollection,
    /// By id, as the 128-bit number of its UUID.
    pub(crate) points: BTreeMap<u128, StoredPoint>,
    pub(crate) schema: HashMap<String, PayloadSchemaInfo>,
    /// The order in which terms were first stored. Qdrant adds the products of a score in it.
    pub(crate) terms: HashMap<u32, usize>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct StoredPoint {
    pub(crate) payload: HashMap<String, Value>,
    /// Of length 1.
    pub(crate) dense: Option<Vec<f32>>,
    pub(crate) sparse: Option<BTreeMap<u32, f32>>,
}

/// A write of points or of an index.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Write {
    pub(crate) call: &'static str,
    pub(crate) wait: Option<bool>,
    pub(crate) ordering: Option<i32>,
    /// The number of points in the request.
    pub(crate) points: usize,
}

impl Loopback {
    pub(crate) async fn start() -> Self {
        Self::start_with(Data::default(), ([127, 0, 0, 1], 0).into()).await
    }

    pub(crate) async fn start_with(data: Data, address: SocketAddr) -> Self {
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

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stops the server with all of its connections.
    pub(crate) async fn stop(self) -> (Data, SocketAddr) {
        let (data, address) = (self.data.clone(), self.address);
        drop(self);
        while TcpStream::connect(address).await.is_ok() {}
        (data, address)
    }
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
        Self(Arc::new(Mutex::new(State {
            version: "1.19.0".to_owned(),
            collections: BTreeMap::new(),
            aliases: BTreeMap::new(),
            writes: Vec::new(),
            api_key: None,
        })))
    }
}

impl Data {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn admit<T>(&self, request: Request<T>) -> Result<T, Status> {
        let expected = self.state().api_key.clone();
        let key = request.metadata().get("api-key").map(|key| key.to_str().unwrap().to_owned());
        if expected.is_some() && key != expected {
            return Err(Status::unauthenticated("Invalid API key or JWT"));
        }
        Ok(request.into_inner())
    }
}

impl State {
    fn stored(&mut self, name: &str) -> Result<&mut Stored, Status> {
        let name = self.aliases.get(name).map_or(name, String::as_str);
        let missing = || Status::not_found(format!("Not found: Collection `{name}` doesn't exist!"));
        self.collections.get_mut(name).ok_or_else(missing)
    }
}

#[tonic::async_trait]
impl Qdrant for Data {
    async fn health_check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckReply>, Status> {
        let version = self.state().version.clone();
        Ok(Response::new(HealthCheckReply { title: "loopback".to_owned(), version, commit: None }))
    }
}
