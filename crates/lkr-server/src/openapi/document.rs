//! The OpenAPI document of a route table.

use actix_web::http::Method;
use utoipa::openapi::{
    ComponentsBuilder, Content, InfoBuilder, LicenseBuilder, OpenApi, OpenApiBuilder, PathsBuilder, Required,
    path::{HttpMethod, Operation, OperationBuilder, Parameter, ParameterBuilder, ParameterIn, PathItem},
    request_body::RequestBodyBuilder,
    schema::{ObjectBuilder, Ref, Schema, Type},
    security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme},
};

use super::{
    operation::{NamedSchema, OperationDoc, ResponseShape},
    response::{ERROR_ENVELOPE, error, error_envelope, errors, other_errors, other_success, success},
};
use crate::http::{Access, Endpoint};

/// The name of the security scheme.
const BEARER: &str = "bearer";

/// The patterns of path parameters.
const ID: &str = "^[0-9a-f]{32}$";
const USERNAME: &str = "^[A-Za-z0-9._@-]{3,64}$";
const SPACE: &str = "^[a-z0-9][a-z0-9._-]{0,63}$";
const MEMBER: &str = "^(user|group):[A-Za-z0-9._@-]{1,64}$";

/// The document of these routes.
pub(crate) fn document(endpoints: &[Endpoint]) -> OpenApi {
    let mut paths = PathsBuilder::new().build();
    let mut components = ComponentsBuilder::new()
        .schema(ERROR_ENVELOPE, error_envelope())
        .security_scheme(BEARER, SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer)));
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
    OpenApiBuilder::new().info(info()).paths(paths).components(Some(components.build())).build()
}

fn with_schema(components: ComponentsBuilder, named: &NamedSchema) -> ComponentsBuilder {
    let components = components.schema(named.name.clone(), named.schema.clone());
    components.schemas_from_iter(named.referenced.iter().cloned())
}

fn info() -> utoipa::openapi::Info {
    let description = "A knowledge-base service: it ingests documents in four layers and searches all of them. Every \
        JSON response has the keys code, message, data and request_id; code 0 means success. Below /api/v1/openai \
        and /api/v1/dify, bodies and errors are those of these protocols.";
    InfoBuilder::new()
        .title("lkr")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(description))
        .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").build()))
        .build()
}

fn schemas(doc: &OperationDoc) -> impl Iterator<Item = &NamedSchema> {
    let payload = match &doc.shape {
        ResponseShape::Envelope(named) | ResponseShape::Bare(named) => Some(&**named),
        ResponseShape::Raw(_) | ResponseShape::File => None,
    };
    payload.into_iter().chain(doc.body.as_deref())
}

fn operation(endpoint: &Endpoint) -> Operation {
    let doc = &endpoint.doc;
    let mut operation = OperationBuilder::new()
        .tag(doc.tag)
        .operation_id(Some(doc.id))
        .summary(Some(doc.summary))
        .response(doc.status.as_str(), success(doc));
    for parameter in path_parameters(endpoint.path).chain(doc.parameters.iter().cloned()) {
        operation = operation.parameter(parameter);
    }
    if let Some(body) = &doc.body {
        let content = Content::new(Some(Ref::from_schema_name(&body.name)));
        let body = RequestBodyBuilder::new().content(doc.body_type, content);
        let required = if doc.body_is_required { Required::True } else { Required::False };
        let body = body.required(Some(required));
        operation = operation.request_body(Some(body.build()));
    }
    for (status, description) in &doc.other_statuses {
        operation = operation.response(status.as_str(), other_success(doc, *status, description));
    }
    for (status, codes) in errors(endpoint) {
        operation = operation.response(status.as_str(), error(endpoint, status, &codes));
    }
    with_security(operation, endpoint.access).build()
}

fn with_security(operation: OperationBuilder, access: Access) -> OperationBuilder {
    let bearer = || SecurityRequirement::new(BEARER, Vec::<String>::new());
    match access {
        Access::Public => operation,
        _ if access.needs_login(false) => operation.security(bearer()),
        _ => operation.security(SecurityRequirement::default()).security(bearer()),
    }
}

fn path_parameters(path: &str) -> impl Iterator<Item = Parameter> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        let pattern = match name {
            "username" => USERNAME,
            "space" | "group" => SPACE,
            "member" => MEMBER,
            _ => ID,
        };
        let text = ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern)).build();
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .schema(Some(Schema::Object(text)))
            .build()
    })
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
