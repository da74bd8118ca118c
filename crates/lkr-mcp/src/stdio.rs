//! Standard input and output: one message a line.

mod lines;
mod message;
mod request_id;
mod transport;

use rmcp::{ServerHandler, ServiceExt, service::ServerInitializeError, transport::io::stdio_pipes};
use tokio::io::{AsyncRead, AsyncWrite};
use transport::LineTransport;

use crate::{Error, ErrorKind, McpServer, Result};

/// Serves one client on standard input and output until the input ends.
pub async fn serve_stdio(server: McpServer) -> Result<()> {
    let (input, output) = stdio_pipes();
    serve(server, input, output).await
}

async fn serve(
    server: impl ServerHandler,
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<()> {
    let failed =
        |error: Box<dyn std::error::Error + Send + Sync>| Error::new(ErrorKind::Internal, "serve", error);
    let versions = ServerHandler::supported_protocol_versions(&server).into_owned();
    let running = match server.serve(LineTransport::new(input, output, versions)).await {
        Ok(running) => running,
        // The client left before its session began.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(failed(error.into())),
    };
    running.waiting().await.map_err(|error| failed(error.into()))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rmcp::{
        ErrorData, RoleServer,
        model::{CallToolRequestParams, CallToolResponse, CallToolResult, CustomRequest, CustomResult},
        service::RequestContext,
    };
    use serde_json::{Value, json};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split},
        task::JoinHandle,
    };

    use super::*;
    use crate::unread_request;

    const INITIALIZE: &str = concat!(
        r#"{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25","#,
        r#""capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#,
    );

    /// A server with a tool that takes a while, or for ever if it is named so.
    struct Slow;

    impl ServerHandler for Slow {
        async fn call_tool(
            &self,
            request: CallToolRequestParams,
            context: RequestContext<RoleServer>,
        ) -> Result<CallToolResponse, ErrorData> {
            match &*request.name {
                "for ever" => context.ct.cancelled().await,
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
            Ok(CallToolResult::success(Vec::new()).into())
        }

        async fn on_custom_request(
            &self,
            request: CustomRequest,
            _: RequestContext<RoleServer>,
        ) -> Result<CustomResult, ErrorData> {
            Err(unread_request::refusal(&request))
        }
    }

    fn start() -> (DuplexStream, JoinHandle<Result<()>>) {
        let (client, server) = duplex(1024 * 1024);
        let (input, output) = split(server);
        (client, tokio::spawn(serve(Slow, input, output)))
    }

    /// The id, and the code of the error or null, of each answer to an input that then ends.
    async fn answers(input: &[u8]) -> Vec<(Value, Value)> {
        let (client, serving) = start();
        let (mut output, mut to_server) = split(client);
        to_server.write_all(input).await.unwrap();
        to_server.shutdown().await.unwrap();
        let mut text = String::new();
        output.read_to_string(&mut text).await.unwrap();
        serving.await.unwrap().unwrap();
        let answers = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        answers.map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect()
    }

    /// The answers to an input after the handshake.
    async fn answers_in_session(input: &[u8]) -> Vec<(Value, Value)> {
        let mut answers = answers(&[INITIALIZE.as_bytes(), b"\n", input].concat()).await;
        let begun = answers.iter().position(|answer| *answer == (json!("begin"), Value::Null));
        answers.remove(begun.unwrap_or_else(|| panic!("{answers:?}")));
        answers
    }

    #[tokio::test]
    async fn line_that_is_no_json_is_answered_with_a_parse_error() {
        assert_eq!(answers(b"garbage\n").await, [(Value::Null, json!(-32_700))]);
        assert_eq!(answers_in_session(b"\xFF\xFE\n").await, [(Value::Null, json!(-32_700))]);
    }

    #[tokio::test]
    async fn malformed_request_is_answered_with_its_id() {
        let malformed = br#"{"jsonrpc":"2.0","id":"s","method":"ping","params":[1]}"#;
        assert_eq!(answers_in_session(malformed).await, [(json!("s"), json!(-32_600))]);
        let batch = br#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#;
        assert_eq!(answers_in_session(batch).await, [(Value::Null, json!(-32_600))]);
    }

    #[tokio::test]
    async fn request_larger_than_the_limit_is_answered_with_its_id() {
        let text = "x".repeat(usize::try_from(message::MAX_MESSAGE_BYTES).unwrap());
        let large = json!({ "jsonrpc": "2.0", "id": 7, "method": "ping", "params": { "text": text } });
        assert_eq!(answers_in_session(large.to_string().as_bytes()).await, [(json!(7), json!(-32_600))]);
    }

    #[tokio::test]
    async fn last_request_needs_no_line_feed() {
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        assert_eq!(answers_in_session(ping).await, [(json!(1), Value::Null)]);
        assert_eq!(answers(INITIALIZE.as_bytes()).await, [(json!("begin"), Value::Null)]);
    }

    #[tokio::test]
    async fn session_begins_after_what_is_no_request() {
        let early = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\r\n\
            {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":1,\"message\":\"x\"}}\r\n\
            {\"jsonrpc\":\"2.0\",\"method\":\"notifications/no_such\"}\r\n\
            {\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\r\n";
        assert_eq!(answers(early.as_bytes()).await, []);
        let input = [early.as_bytes(), INITIALIZE.as_bytes(), b"\r\n"].concat();
        assert_eq!(answers(&input).await, [(json!("begin"), Value::Null)]);
    }

    #[tokio::test]
    async fn request_without_its_params_has_invalid_params() {
        let no_handshake = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        assert_eq!(answers(no_handshake).await, [(json!(1), json!(-32_602))]);
        for method in ["initialize", "resources/read", "tools/call"] {
            let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method }).to_string();
            assert_eq!(
                answers_in_session(request.as_bytes()).await,
                [(json!(1), json!(-32_602))],
                "{method}"
            );
        }
        let unknown = br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#;
        assert_eq!(answers_in_session(unknown).await, [(json!(1), json!(-32_601))]);
    }

    #[tokio::test]
    async fn requests_in_flight_are_answered_after_the_end_of_the_input() {
        let call =
            |id| json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "x" } });
        let calls: Vec<_> = (0..20).map(|id| call(id).to_string()).collect();
        let mut answers = answers_in_session(calls.join("\n").as_bytes()).await;
        answers.sort_by_key(|(id, _)| id.as_u64());
        assert_eq!(answers, (0..20).map(|id| (json!(id), Value::Null)).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn cancelled_request_ends_without_an_answer() {
        let call =
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "for ever" } });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        assert_eq!(answers_in_session(format!("{call}\n{cancel}\n").as_bytes()).await, []);
    }
}
