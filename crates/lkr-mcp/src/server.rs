//! The protocol's methods.

use std::{borrow::Cow, sync::Arc};

use lkr::KnowledgeBase;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
        CustomResult, Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse,
        ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
};

use crate::{Access, Error, ErrorKind, resources, tools, unread_request};

/// What clients tell their model about this server.
const INSTRUCTIONS: &str = "A knowledge base. context gathers what answers a question; search finds passages; fetch reads \
    on from an id. Cite the url or title of what you use.";

/// A server of the protocol for one caller.
#[derive(Debug, Clone)]
pub struct McpServer {
    kb: KnowledgeBase,
    access: Arc<dyn Access>,
}

impl McpServer {
    /// A server over a knowledge base, for a caller with this access.
    #[must_use]
    pub fn new(kb: KnowledgeBase, access: Arc<dyn Access>) -> Self {
        Self { kb, access }
    }

    pub(crate) const fn kb(&self) -> &KnowledgeBase {
        &self.kb
    }

    pub(crate) fn access(&self) -> &dyn Access {
        &*self.access
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("lkr", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    /// The revisions since streamable HTTP.
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        const VERSIONS: &[ProtocolVersion] = &[
            ProtocolVersion::V_2025_03_26,
            ProtocolVersion::V_2025_06_18,
            ProtocolVersion::V_2025_11_25,
            ProtocolVersion::V_2026_07_28,
        ];
        Cow::Borrowed(VERSIONS)
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::definition(name)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let may_add = self.access.may_add().await.map_err(|error| protocol_error(&error))?;
        let definitions = ListToolsResult::with_all_items(tools::definitions(may_add));
        Ok(definitions.with_ttl_ms(60_000).with_cache_scope(CacheScope::Private))
    }

    /// A call that fails is a result with the reason, which the model reads and acts on.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let called = tools::call(self, &request.name, arguments).await;
        let shown: String = request.name.chars().take(100).collect();
        let called = called
            .ok_or_else(|| ErrorData::invalid_params(format!("no tool has the name {shown:?}"), None))?;
        let blocks = |parts: Vec<String>| parts.into_iter().map(ContentBlock::text).collect();
        let result = match called {
            Ok(parts) => CallToolResult::success(blocks(parts)),
            Err(error) => CallToolResult::error(blocks(vec![error.reason()])),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|page| page.cursor);
        resources::list(self, cursor.as_deref()).await.map_err(|error| protocol_error(&error))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = resources::read(self, &request.uri).await.map_err(|error| protocol_error(&error))?;
        let shown: String = request.uri.chars().take(200).collect();
        let read = read.ok_or_else(|| {
            ErrorData::resource_not_found(format!("no resource has the URI {shown:?}"), None)
        })?;
        Ok(read.into())
    }

    /// A request that the library could not read as one of a method that it knows.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(unread_request::refusal(&request))
    }
}

/// An error of a method that has no result for failures.
fn protocol_error(error: &Error) -> ErrorData {
    let reason = error.reason();
    match error.kind() {
        ErrorKind::Invalid => ErrorData::invalid_params(reason, None),
        ErrorKind::NotFound => ErrorData::resource_not_found(reason, None),
        ErrorKind::Refused => ErrorData::invalid_request(reason, None),
        ErrorKind::Unavailable | ErrorKind::Internal => ErrorData::internal_error(reason, None),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http::Request;
    use lkr::Creator;
    use serde_json::{Value, json};

    use super::*;
    use crate::{FullAccess, answer};

    async fn ask(method: &str, params: Option<Value>) -> Value {
        let kb = KnowledgeBase::builder().build().await.unwrap();
        let creator = Creator { name: "a test".to_owned(), id: String::new() };
        let server = McpServer::new(kb.clone(), Arc::new(FullAccess::new(kb, creator, false)));
        let mut message = json!({ "jsonrpc": "2.0", "id": 1, "method": method });
        if let Some(params) = params {
            message["params"] = params;
        }
        let request = Request::post("/mcp")
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(Bytes::from(message.to_string()))
            .unwrap();
        serde_json::from_slice(answer(server, request, &[]).await.body()).unwrap()
    }

    #[tokio::test]
    async fn request_without_its_params_has_invalid_params() {
        for method in ["initialize", "resources/read", "tools/call"] {
            let answer = ask(method, None).await;
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(1), &json!(-32_602)), "{answer}");
        }
        assert_eq!(ask("no/such", None).await["error"]["code"], -32_601);
    }

    #[tokio::test]
    async fn integer_argument_may_have_a_fraction_of_zero() {
        let call = |limit: Value| json!({ "name": "list", "arguments": { "limit": limit } });
        for (limit, is_error) in [(json!(3.0), false), (json!(3.5), true)] {
            let answer = ask("tools/call", Some(call(limit))).await;
            assert_eq!(answer["result"]["isError"], is_error, "{answer}");
        }
    }
}
