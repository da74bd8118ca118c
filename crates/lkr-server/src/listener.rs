//! The listening sockets, and the HTTP service behind each connection.

use std::{
    future::ready,
    io,
    net::{SocketAddr, TcpListener, ToSocketAddrs},
    rc::Rc,
    time::Duration,
};

use actix_http::{HttpService, error::DispatchError};
use actix_server::{Server, ServerHandle};
use actix_service::{ServiceFactory, ServiceFactoryExt, fn_service, map_config};
use actix_web::{dev::AppConfig, rt::net::TcpStream, web::Data};
use anyhow::{Context, Result};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::task::JoinHandle;

use crate::{app::create_app, http::Connection, state::AppState};

/// How long a connection may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may take to shut down after the server closes it.
const DISCONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an idle connection is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 2_048;

/// The HTTP server, on threads of its own.
pub(crate) struct HttpServer {
    handle: ServerHandle,
    task: JoinHandle<io::Result<()>>,
}

impl HttpServer {
    /// Refuses connections from now on. Completes when those that are open have ended.
    pub(crate) fn refuse_connections(&self) -> impl Future<Output = ()> + use<> {
        self.handle.stop(true)
    }

    /// Ends all connections, and soon after this its threads.
    pub(crate) async fn end(self) {
        self.task.abort();
        // An error says that it was aborted, or had ended.
        let _ = self.task.await;
    }
}

/// Serves the application on an address. Returns the addresses that it listens on.
///
/// # Errors
/// That no address of this name can be listened on.
pub(crate) fn serve(
    address: &str,
    state: &Data<AppState>,
    grace_period: Duration,
) -> Result<(HttpServer, Vec<SocketAddr>)> {
    let mut server = Server::build().disable_signals().shutdown_timeout(grace_period.as_secs());
    let mut addresses = Vec::new();
    for listener in bind(address).with_context(|| format!("cannot listen on {address}"))? {
        addresses.push(listener.local_addr()?);
        let state = state.clone();
        server = server.listen("http", listener, move || connection_service(&state))?;
    }
    let server = server.run();
    let handle = server.handle();
    Ok((HttpServer { handle, task: tokio::spawn(server) }, addresses))
}

/// Serves the requests of a connection.
fn connection_service(
    state: &Data<AppState>,
) -> impl ServiceFactory<TcpStream, Config = (), Response = (), Error = DispatchError, InitError = ()> + use<>
{
    let app = map_config(create_app(state.clone()), |()| AppConfig::default());
    let http = HttpService::build()
        .keep_alive(KEEP_ALIVE)
        .client_request_timeout(HEAD_TIMEOUT)
        .client_disconnect_timeout(DISCONNECT_TIMEOUT)
        // A client that disconnects cancels its request, above all the parsing of its file. Over TCP, a half-closed
        // connection looks the same as a closed one. Few clients half-close, and they get no response.
        .h1_allow_half_closed(false)
        .on_connect_ext(|connection: &Connection<TcpStream>, data| {
            data.insert(connection.pending());
        })
        .h1(app);
    let state = state.clone();
    let observer: Rc<dyn Fn(u16)> = Rc::new(move |status| {
        tracing::debug!(status, "request refused before it reached the application");
        state.metrics.request("unknown", "unknown", status, Duration::ZERO);
    });
    fn_service(move |stream: TcpStream| {
        let peer = stream.peer_addr().ok();
        ready(Ok((Connection::new(stream, Rc::clone(&observer)), peer)))
    })
    .and_then(http)
}

/// Binds every address of a name that can be bound.
fn bind(address: &str) -> io::Result<Vec<TcpListener>> {
    let (mut listeners, mut failure) = (Vec::new(), None);
    for address in address.to_socket_addrs()? {
        match bind_one(address) {
            Ok(listener) => listeners.push(listener),
            Err(error) => failure = Some(error),
        }
    }
    match (listeners.is_empty(), failure) {
        (false, _) => Ok(listeners),
        (true, Some(error)) => Err(error),
        (true, None) => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
    }
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}
