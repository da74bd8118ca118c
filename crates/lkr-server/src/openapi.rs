//! The OpenAPI document, made of the same table that the routes are registered from.

use actix_web::http::{Method, StatusCode};
use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        ComponentsBuilder, Content, Header, HeaderBuilder, InfoBuilder, LicenseBuilder, OpenApi,
        OpenApiBuilder, PathsBuilder, RefOr, Required, ResponseBuilder,
        path::{HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem},
        request_body::RequestBodyBuilder,
        response::Response,
        schema::{Object, ObjectBuilder, Ref, Schema, SchemaType, Type},
        security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
    },
};

use crate::{
    error::Code,
    http::{Access, Endpoint},
};

const BEARER: &str = "bearer";

/// What parts of paths look like.
const ID: &str = "^[0-9a-f]{32}$";
const USERNAME: &str = "^[A-Za-z0-9._@-]{3,64}$";

/// A schema under its name, with those it refers to.
pub(crate) struct Named {
    name: String,
    own: RefOr<Schema>,
    others: Vec<(String, RefOr<Schema>)>,
}

/// The schema of a type.
pub(crate) fn schema<T: ToSchema>() -> Box<Named> {
    let mut others = Vec::new();
    T::schemas(&mut others);
    Box::new(Named { name: T::name().into_owned(), own: <T as PartialSchema>::schema(), others })
}

/// What a successful answer holds.
pub(crate) enum Shape {
    /// The envelope around a payload.
    Envelope(Box<Named>),
    /// A body of this content type, as it is.
    Bare(&'static str),
    /// A file of any type.
    File,
}

/// What is said of a route.
pub(crate) struct Doc {
    tag: &'static str,
    id: &'static str,
    summary: &'static str,
    status: StatusCode,
    shape: Shape,
    body: Option<Box<Named>>,
    /// The content type of the body.
    body_type: &'static str,
    also: Vec<(StatusCode, &'static str)>,
    refuses: Vec<(StatusCode, Code)>,
    query: Vec<Parameter>,
    errors: Vec<Code>,
    headers: Vec<(&'static str, &'static str)>,
    unready: bool,
}

impl Doc {
    pub(crate) fn new(tag: &'static str, id: &'static str, summary: &'static str, shape: Shape) -> Self {
        let (status, body, query) = (StatusCode::OK, None, Vec::new());
        let (errors, headers, unready) = (Vec::new(), Vec::new(), false);
        let (body_type, also, refuses) = ("application/json", Vec::new(), Vec::new());
        Self {
            tag,
            id,
            summary,
            status,
            shape,
            body,
            body_type,
            also,
            refuses,
            query,
            errors,
            headers,
            unready,
        }
    }

    /// The schema of the body it takes.
    pub(crate) fn body<T: ToSchema>(self) -> Self {
        Self { body: Some(schema::<T>()), ..self }
    }

    /// The schema of the form it takes.
    pub(crate) fn form<T: ToSchema>(self) -> Self {
        Self { body_type: "multipart/form-data", ..self.body::<T>() }
    }

    /// A status that it may answer as well without failing, and what that says.
    pub(crate) fn also(mut self, status: StatusCode, description: &'static str) -> Self {
        self.also.push((status, description));
        self
    }

    /// A status that it may refuse with besides those that the codes of its errors come with.
    pub(crate) fn refuses(mut self, status: StatusCode, code: Code) -> Self {
        self.refuses.push((status, code));
        self
    }

    /// The status of success where it is not 200.
    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Codes it may answer besides those that follow from who may call it and what it takes.
    pub(crate) fn errors(self, errors: &[Code]) -> Self {
        Self { errors: errors.to_vec(), ..self }
    }

    /// It answers its payload with 503 too.
    pub(crate) fn also_unready(self) -> Self {
        Self { unready: true, ..self }
    }

    /// A header that a successful answer has besides `X-Request-Id`, and what it says.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str) -> Self {
        self.headers.push((name, description));
        self
    }

    /// A query parameter that is a text.
    pub(crate) fn text(self, name: &str, description: &str) -> Self {
        self.parameter(query_parameter(
            name,
            description,
            ObjectBuilder::new().schema_type(Type::String).build(),
        ))
    }

    /// A header that the request may have, and what it says.
    pub(crate) fn request_header(self, name: &str, description: &str) -> Self {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        self.parameter(optional_parameter(ParameterIn::Header, name, description, text))
    }

    /// `limit` and `offset`.
    pub(crate) fn paged(self) -> Self {
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(100))
            .default(Some(json!(20)))
            .build();
        self.parameter(query_parameter("limit", "How many items a page has.", limit))
            .text("offset", "Where the page begins: next_offset of the one before.")
    }

    fn parameter(mut self, parameter: Parameter) -> Self {
        self.query.push(parameter);
        self
    }
}

/// The document.
pub(crate) fn document(endpoints: &[Endpoint]) -> OpenApi {
    let mut paths = PathsBuilder::new().build();
    let mut components = ComponentsBuilder::new()
        .schema("ErrorEnvelope", error_envelope())
        .security_scheme(BEARER, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
    for endpoint in endpoints {
        let Some(method) = http_method(&endpoint.method) else { continue };
        let item = PathItem::new(method, operation(endpoint));
        match paths.paths.get_mut(endpoint.path) {
            Some(known) => known.merge_operations(item),
            None => drop(paths.paths.insert(endpoint.path.to_owned(), item)),
        }
        for named in names(&endpoint.doc) {
            components = components.schema(named.name.clone(), named.own.clone());
            components = components.schemas_from_iter(named.others.iter().cloned());
        }
    }
    OpenApiBuilder::new().info(info()).paths(paths).components(Some(components.build())).build()
}

fn info() -> utoipa::openapi::Info {
    let description = "A knowledge-base service: documents in, four layers, layered search out. Every JSON answer \
        has the keys code, message, data and request_id; code 0 stands for success.";
    InfoBuilder::new()
        .title("lkr")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description))
        .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").build()))
        .build()
}

fn names(doc: &Doc) -> impl Iterator<Item = &Named> {
    let answer = match &doc.shape {
        Shape::Envelope(named) => Some(&**named),
        Shape::Bare(_) | Shape::File => None,
    };
    answer.into_iter().chain(doc.body.as_deref())
}

fn operation(endpoint: &Endpoint) -> utoipa::openapi::path::Operation {
    let doc = &endpoint.doc;
    let mut operation = OperationBuilder::new()
        .tag(doc.tag)
        .operation_id(Some(doc.id))
        .summary(Some(doc.summary))
        .response(doc.status.as_str(), success(doc));
    for parameter in path_parameters(endpoint.path).chain(doc.query.iter().cloned()) {
        operation = operation.parameter(parameter);
    }
    if let Some(body) = &doc.body {
        let content = Content::new(Some(Ref::from_schema_name(&body.name)));
        let body = RequestBodyBuilder::new().content(doc.body_type, content).required(Some(Required::True));
        operation = operation.request_body(Some(body.build()));
    }
    for (status, description) in &doc.also {
        operation = operation.response(status.as_str(), also(doc, *status, description));
    }
    for (status, codes) in refusals(endpoint) {
        operation = operation.response(status.as_str(), refusal(doc, status, &codes));
    }
    match endpoint.access {
        Access::Open => operation,
        Access::Unlisted | Access::Reader => {
            operation.security(SecurityRequirement::default()).security(bearer())
        }
        Access::Member | Access::Flagged | Access::Admin | Access::Owner | Access::TaskOwner => {
            operation.security(bearer())
        }
    }
    .build()
}

fn bearer() -> SecurityRequirement {
    SecurityRequirement::new(BEARER, Vec::<String>::new())
}

/// The errors of a route by HTTP status: what follows from its rights, its input and what it says itself.
fn refusals(endpoint: &Endpoint) -> Vec<(StatusCode, Vec<Code>)> {
    let doc = &endpoint.doc;
    let mut all: Vec<(StatusCode, Code)> = doc.errors.iter().map(|code| (code.status(), *code)).collect();
    all.extend(doc.refuses.iter().copied());
    if endpoint.path.starts_with("/api/v1") {
        all.extend([Code::Invalid, Code::Overloaded, Code::Internal].map(|code| (code.status(), code)));
    }
    if endpoint.method != Method::GET {
        all.push((StatusCode::PAYLOAD_TOO_LARGE, Code::Invalid));
    }
    if doc.body.is_some() {
        all.push((StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::Invalid));
    }
    if endpoint.access != Access::Open {
        all.push((Code::Unauthenticated.status(), Code::Unauthenticated));
    }
    if endpoint.access.needs_login(true) && endpoint.access != Access::Flagged {
        all.push((Code::PasswordChangeRequired.status(), Code::PasswordChangeRequired));
    }
    if matches!(endpoint.access, Access::Admin | Access::Owner | Access::TaskOwner) {
        all.push((Code::Forbidden.status(), Code::Forbidden));
    }
    all.sort_unstable();
    all.dedup();
    all.chunk_by(|a, b| a.0 == b.0)
        .filter_map(|same| Some((same.first()?.0, same.iter().map(|(_, code)| *code).collect())))
        .collect()
}

fn refusal(doc: &Doc, status: StatusCode, codes: &[Code]) -> Response {
    let codes: Vec<_> = codes.iter().map(|code| format!("{} {}", code.number(), code.name())).collect();
    let content = match &doc.shape {
        Shape::Envelope(named) if doc.unready && status == StatusCode::SERVICE_UNAVAILABLE => {
            let data = RefOr::Ref(Ref::from_schema_name(&named.name));
            Content::new(Some(envelope(json!(Code::Overloaded.number()), data)))
        }
        _ => Content::new(Some(Ref::from_schema_name("ErrorEnvelope"))),
    };
    let response = ResponseBuilder::new().description(codes.join(", ")).content("application/json", content);
    let (name, description) = match status {
        StatusCode::UNAUTHORIZED => ("WWW-Authenticate", "Bearer."),
        StatusCode::RANGE_NOT_SATISFIABLE => ("Content-Range", "Of how many bytes the file is."),
        StatusCode::METHOD_NOT_ALLOWED => ("Allow", "The methods that the path has."),
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
            ("Retry-After", "After how many seconds to try again.")
        }
        _ => return with_request_id(response).build(),
    };
    with_request_id(response).header(name, header(description)).build()
}

fn with_request_id(response: ResponseBuilder) -> ResponseBuilder {
    response
        .header("X-Request-Id", header("Names the request in the log: the sender's id, or one made here."))
}

fn header(description: &str) -> Header {
    let text = ObjectBuilder::new().schema_type(Type::String).build();
    HeaderBuilder::new().schema(Some(text)).description(Some(description)).build()
}

/// Another answer that is no failure: with the body of the usual one, unless it has none.
fn also(doc: &Doc, status: StatusCode, description: &str) -> Response {
    let mut response = success(doc);
    response.description = description.to_owned();
    match status {
        StatusCode::NOT_MODIFIED => response.content.clear(),
        StatusCode::PARTIAL_CONTENT => {
            let told = header("Which bytes they are, and of how many.");
            response.headers.insert("Content-Range".to_owned(), RefOr::T(told));
        }
        _ => {}
    }
    response
}

fn success(doc: &Doc) -> Response {
    let response = with_request_id(ResponseBuilder::new().description("ok"));
    let response = doc
        .headers
        .iter()
        .fold(response, |response, (name, description)| response.header(*name, header(description)));
    match &doc.shape {
        Shape::Envelope(named) => {
            let data = RefOr::Ref(Ref::from_schema_name(&named.name));
            response.content("application/json", Content::new(Some(envelope(json!(0), data))))
        }
        // A file may be anything, which OpenAPI 3.1 says by no schema at all.
        Shape::File => response.content("*/*", Content::new(None::<Schema>)),
        Shape::Bare(content_type) => {
            let kind = if *content_type == "application/json" { Type::Object } else { Type::String };
            let body = ObjectBuilder::new().schema_type(kind).build();
            response.content(*content_type, Content::new(Some(Schema::Object(body))))
        }
    }
    .build()
}

fn envelope(code: serde_json::Value, data: RefOr<Schema>) -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let code = ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some([code]));
    let object = ObjectBuilder::new()
        .property("code", code)
        .property("message", text())
        .property("data", data)
        .property("request_id", text());
    let required = ["code", "message", "data", "request_id"];
    Schema::Object(required.into_iter().fold(object, ObjectBuilder::required).build())
}

fn error_envelope() -> Schema {
    let said: Vec<_> = Code::all().map(|code| format!("{} {}", code.number(), code.name())).collect();
    let codes = ObjectBuilder::new().schema_type(Type::Integer).description(Some(said.join(", "))).build();
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let nothing = ObjectBuilder::new().schema_type(SchemaType::new(Type::Null));
    let object = ObjectBuilder::new()
        .property("code", codes)
        .property("message", text())
        .property("data", nothing)
        .property("request_id", text());
    let required = ["code", "message", "data", "request_id"];
    Schema::Object(required.into_iter().fold(object, ObjectBuilder::required).build())
}

fn path_parameters(path: &str) -> impl Iterator<Item = Parameter> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        let pattern = if name == "username" { USERNAME } else { ID };
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build();
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(Schema::Object(text)))
            .build()
    })
}

fn query_parameter(name: &str, description: &str, schema: Object) -> Parameter {
    optional_parameter(ParameterIn::Query, name, description, schema)
}

fn optional_parameter(place: ParameterIn, name: &str, description: &str, schema: Object) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(Schema::Object(schema)))
        .build()
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
