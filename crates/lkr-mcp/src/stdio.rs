//! Standard input and output: one message a line.

use rmcp::{ServiceExt, transport::io::stdio_pipes};

use crate::{Error, ErrorKind, McpServer, Result};

/// Serves one client on standard input and output until the input ends.
pub async fn serve_stdio(server: McpServer) -> Result<()> {
    let failed =
        |error: Box<dyn std::error::Error + Send + Sync>| Error::new(ErrorKind::Internal, "serve", error);
    let running = server.serve(stdio_pipes()).await.map_err(|error| failed(error.into()))?;
    running.waiting().await.map_err(|error| failed(error.into()))?;
    Ok(())
}
