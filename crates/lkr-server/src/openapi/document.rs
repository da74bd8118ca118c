//! The OpenAPI document of a route table.

use actix_web::http::Method;
use serde_json::json;
use utoipa::openapi::{
    ComponentsBuilder, Content, HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder,
    PathsBuilder, Required, Server, ServerBuilder, Tag,
    encoding::{Encoding, EncodingBuilder},
    path::{HttpMethod, Operation, OperationBuilder, PathItem},
    request_body::{RequestBody, RequestBodyBuilder},
    schema::{ObjectBuilder, Ref, Type},
    security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
    tag::TagBuilder,
};

use super::{
    envelope::error_envelope,
    errors::{ERROR_ENVELOPE, error, errors, other_errors},
    examples,
    links::link,
    operation::{NamedSchema, OperationDoc, ResponseShape},
    parameters::path_parameters,
    response::{other_success, success},
};
use crate::http::{Access, CSRF_HEADER, Endpoint, PLAIN_COOKIE};

/// The names of the security schemes.
const BEARER: &str = "bearer";
const COOKIE: &str = "cookie";
const CSRF: &str = "csrf";

/// The tags with their descriptions, in the order of the document.
const TAGS: [(&str, &str); 14] = [
    ("Accounts", "Login, logout, registration and the caller's own password."),
    ("Documents", "Adding, reading, changing, replacing and deleting documents and their files."),
    ("Tasks", "The work that requests started: watching, cancelling, retrying."),
    ("Search", "Layered search, and passages for the prompt of a language model."),
    ("Knowledge", "The categories of documents, and statistics."),
    ("Spaces", "Sets of documents with rights of their own, and their members."),
    ("Groups", "Groups of accounts, which can be members of spaces."),
    ("Keys", "API keys of the caller's account."),
    ("Users", "Accounts, for admins."),
    (
        "Settings",
        "Models, parsers and the detection of duplicates. A change takes effect from the next request.",
    ),
    ("Webhooks", "URLs that events are posted to."),
    ("Evaluation", "Measuring the quality of searches."),
    ("OpenAI", "Spaces as vector stores of the OpenAI API, for its clients."),
    ("Dify", "Spaces as knowledge of Dify, by its External Knowledge API."),
];

/// The tag of everything else that keeps the service running.
const OPERATIONS: (&str, &str) =
    ("Operations", "Health, metrics, the audit log, backups, and the pages of the service.");

/// The document of these routes.
pub(crate) fn document(endpoints: &[Endpoint]) -> OpenApi {
    let mut paths = PathsBuilder::new().build();
    let mut components = ComponentsBuilder::new()
        .schema(ERROR_ENVELOPE, error_envelope())
        .security_scheme(BEARER, bearer())
        .security_scheme(COOKIE, cookie())
        .security_scheme(CSRF, csrf());
    for endpoint in endpoints.iter().filter(|endpoint| endpoint.is_listed()) {
        let Some(method) = http_method(&endpoint.method) else { continue };
        let item = PathItem::new(method, operation(endpoint));
        match paths.paths.get_mut(endpoint.path) {
            Some(existing) => existing.merge_operations(item),
            None => drop(paths.paths.insert(endpoint.path.to_owned(), item)),
        }
        for named in schemas(&endpoint.doc) {
            components = with_schema(components, named);
        }
    }
    for named in &other_errors() {
        components = with_schema(components, named);
    }
    OpenApiBuilder::new()
        .info(info())
        .servers(Some([server()]))
        .tags(Some(TAGS.into_iter().chain([OPERATIONS]).map(tag)))
        .paths(paths)
        .components(Some(components.build()))
        .build()
}

fn with_schema(components: ComponentsBuilder, named: &NamedSchema) -> ComponentsBuilder {
    let components = components.schema(named.name.clone(), named.schema.clone());
    components.schemas_from_iter(named.referenced.iter().cloned())
}

fn info() -> utoipa::openapi::Info {
    let description = "A knowledge-base service: it ingests documents in four layers and searches all of them. Every \
        JSON response has the keys code, message, data and request_id; code 0 means success. Requests that need a login \
        send the access_token of `POST /api/v1/auth/login`, or an API key, as `Authorization: Bearer <credential>`. A page may \
        have the session as a cookie instead (`cookie: true` at the login), and then sends its csrf_token in X-Lkr-CSRF with every method but \
        GET and HEAD. Below /api/v1/openai and \
        /api/v1/dify, bodies and errors are those of these protocols.";
    let license =
        LicenseBuilder::new().name("MIT OR Apache-2.0").identifier(Some("MIT OR Apache-2.0")).build();
    InfoBuilder::new()
        .title("lkr")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description))
        .license(Some(license))
        .build()
}

fn server() -> Server {
    ServerBuilder::new().url("/").description(Some("The server that this document comes from.")).build()
}

fn tag((name, description): (&str, &str)) -> Tag {
    TagBuilder::new().name(name).description(Some(description)).build()
}

fn bearer() -> SecurityScheme {
    let description = "The access_token of a login, or an API key.";
    let scheme = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(description)).build();
    SecurityScheme::Http(scheme)
}

fn cookie() -> SecurityScheme {
    let description = "The session that a login with `cookie: true` sets, for pages. Behind a proxy with TLS that \
        LKR_TRUSTED_PROXIES names it is `__Host-lkr_session`. It is ignored where the header Authorization is sent.";
    SecurityScheme::ApiKey(ApiKey::Cookie(ApiKeyValue::with_description(PLAIN_COOKIE, description)))
}

fn csrf() -> SecurityScheme {
    let description = "The csrf_token of the session in the cookie, from the login or `GET /api/v1/auth/me`.";
    SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::with_description(CSRF_HEADER, description)))
}

fn schemas(doc: &OperationDoc) -> impl Iterator<Item = &NamedSchema> {
    let payload = match &doc.shape {
        ResponseShape::Envelope(named) | ResponseShape::Bare(named) => Some(&**named),
        ResponseShape::Raw(_) | ResponseShape::File => None,
    };
    let others = doc.other_statuses.iter().filter_map(|other| other.payload.as_deref());
    payload.into_iter().chain(others).chain(doc.body.as_deref()).chain(doc.parameter_schemas())
}

fn operation(endpoint: &Endpoint) -> Operation {
    let doc = &endpoint.doc;
    let mut operation = OperationBuilder::new()
        .tag(doc.tag)
        .operation_id(Some(doc.id))
        .summary(Some(doc.summary))
        .request_body(request_body(doc));
    for parameter in path_parameters(endpoint.path, doc).chain(doc.parameters.iter().cloned()) {
        operation = operation.parameter(parameter);
    }
    let others = doc.other_statuses.iter().map(|other| (other.status, other_success(doc, other)));
    for (status, mut response) in [(doc.status, success(doc))].into_iter().chain(others) {
        link(doc, status.as_str(), &mut response);
        operation = operation.response(status.as_str(), response);
    }
    for (status, codes) in errors(endpoint) {
        operation = operation.response(status.as_str(), error(endpoint, status, &codes));
    }
    with_security(operation, endpoint).build()
}

fn request_body(doc: &OperationDoc) -> Option<RequestBody> {
    let body = doc.body.as_deref()?;
    let mut content = Content::new(Some(Ref::from_schema_name(&body.name)));
    content.example = examples::request(doc.id).cloned();
    if doc.body_type == "multipart/form-data" {
        content.encoding.insert("file".to_owned(), file_encoding());
    }
    let required = if doc.body_is_required { Required::True } else { Required::False };
    let request = RequestBodyBuilder::new().description(Some(body.description()));
    Some(request.content(doc.body_type, content).required(Some(required)).build())
}

/// The part of a form that has a name.
fn file_encoding() -> Encoding {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    let name = HeaderBuilder::new()
        .schema(Some(text))
        .description(Some("It has the name of the file, whose extension decides the format."))
        .example(Some(json!("form-data; name=\"file\"; filename=\"moons.md\"")));
    EncodingBuilder::new().header("Content-Disposition", name.build()).build()
}

/// The credentials that a route takes: a bearer, or the cookie with its CSRF token; for a read none, if it needs no login.
fn with_security(operation: OperationBuilder, endpoint: &Endpoint) -> OperationBuilder {
    let requirement = |name| SecurityRequirement::new(name, Vec::<String>::new());
    let cookie = match endpoint.method {
        Method::GET => requirement(COOKIE),
        _ => requirement(COOKIE).add(CSRF, Vec::<String>::new()),
    };
    let operation = match endpoint.access {
        Access::Public => return operation,
        access if access.needs_login(false) => operation,
        _ => operation.security(SecurityRequirement::default()),
    };
    operation.security(requirement(BEARER)).security(cookie)
}

fn http_method(method: &Method) -> Option<HttpMethod> {
    match *method {
        Method::GET => Some(HttpMethod::Get),
        Method::POST => Some(HttpMethod::Post),
        Method::DELETE => Some(HttpMethod::Delete),
        Method::PUT => Some(HttpMethod::Put),
        Method::PATCH => Some(HttpMethod::Patch),
        _ => None,
    }
}
