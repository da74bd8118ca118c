//! The documentation of one route.

use actix_web::http::StatusCode;
use serde_json::json;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{
        RefOr, Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{Object, ObjectBuilder, Schema, Type},
    },
};

use crate::error::ErrorCode;

/// A schema with its name and the schemas that it refers to.
pub(crate) struct NamedSchema {
    pub(super) name: String,
    pub(super) schema: RefOr<Schema>,
    pub(super) referenced: Vec<(String, RefOr<Schema>)>,
}

/// The schema of a type.
pub(crate) fn schema<T: ToSchema>() -> Box<NamedSchema> {
    let mut referenced = Vec::new();
    T::schemas(&mut referenced);
    Box::new(NamedSchema { name: T::name().into_owned(), schema: <T as PartialSchema>::schema(), referenced })
}

/// The body of a successful response.
pub(crate) enum ResponseShape {
    /// The envelope around a payload.
    Envelope(Box<NamedSchema>),
    /// A JSON payload without the envelope.
    Bare(Box<NamedSchema>),
    /// A body of this content type without an envelope.
    Raw(&'static str),
    /// A file of any type.
    File,
}

/// What the OpenAPI document says about a route.
pub(crate) struct OperationDoc {
    pub(super) tag: &'static str,
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) status: StatusCode,
    pub(super) shape: ResponseShape,
    pub(super) body: Option<Box<NamedSchema>>,
    /// The content type of the request body.
    pub(super) body_type: &'static str,
    pub(super) other_statuses: Vec<(StatusCode, &'static str)>,
    pub(super) other_errors: Vec<(StatusCode, ErrorCode)>,
    pub(super) parameters: Vec<Parameter>,
    pub(super) errors: Vec<ErrorCode>,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    /// Whether a request must have a body, if the operation takes one.
    pub(super) body_is_required: bool,
    pub(super) has_unready_payload: bool,
    pub(crate) is_listed: bool,
}

impl OperationDoc {
    pub(crate) fn new(
        tag: &'static str,
        id: &'static str,
        summary: &'static str,
        shape: ResponseShape,
    ) -> Self {
        Self {
            tag,
            id,
            summary,
            status: StatusCode::OK,
            shape,
            body: None,
            body_type: "application/json",
            other_statuses: Vec::new(),
            other_errors: Vec::new(),
            parameters: Vec::new(),
            errors: Vec::new(),
            headers: Vec::new(),
            body_is_required: true,
            has_unready_payload: false,
            is_listed: true,
        }
    }

    /// The schema of the request body.
    pub(crate) fn body<T: ToSchema>(self) -> Self {
        Self { body: Some(schema::<T>()), ..self }
    }

    /// The schema of a request body that may be absent.
    pub(crate) fn optional_body<T: ToSchema>(self) -> Self {
        Self { body_is_required: false, ..self.body::<T>() }
    }

    /// The schema of the request's form.
    pub(crate) fn form<T: ToSchema>(self) -> Self {
        Self { body_type: "multipart/form-data", ..self.body::<T>() }
    }

    /// Another status that is no error, and its description.
    pub(crate) fn also_status(mut self, status: StatusCode, description: &'static str) -> Self {
        self.other_statuses.push((status, description));
        self
    }

    /// Another error: a code with a status that it does not usually have.
    pub(crate) fn also_error(mut self, status: StatusCode, code: ErrorCode) -> Self {
        self.other_errors.push((status, code));
        self
    }

    /// The status of success, 200 by default.
    pub(crate) fn status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    /// Error codes besides those that follow from the route's access and body.
    pub(crate) fn errors(self, errors: &[ErrorCode]) -> Self {
        Self { errors: errors.to_vec(), ..self }
    }

    /// A 503 has the payload too.
    pub(crate) fn unready_payload(self) -> Self {
        Self { has_unready_payload: true, ..self }
    }

    /// A route of a protocol with a description of its own. The document does not list it.
    pub(crate) fn unlisted(self) -> Self {
        Self { is_listed: false, ..self }
    }

    /// A header of successful responses besides `X-Request-Id`, and its description.
    pub(crate) fn header(mut self, name: &'static str, description: &'static str) -> Self {
        self.headers.push((name, description));
        self
    }

    /// An optional query parameter of type string.
    pub(crate) fn query_text(self, name: &str, description: &str) -> Self {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        self.parameter(optional_parameter(ParameterIn::Query, name, description, text))
    }

    /// An optional request header, and its description.
    pub(crate) fn request_header(self, name: &str, description: &str) -> Self {
        let text = ObjectBuilder::new().schema_type(Type::String).build();
        self.parameter(optional_parameter(ParameterIn::Header, name, description, text))
    }

    /// The query parameters `limit` and `offset`.
    pub(crate) fn paged(self) -> Self {
        self.query_limit().query_text("offset", "The cursor next_offset of the previous page.")
    }

    /// The query parameter `limit`.
    pub(crate) fn query_limit(self) -> Self {
        let limit = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(1))
            .maximum(Some(100))
            .default(Some(json!(20)))
            .build();
        let limit =
            optional_parameter(ParameterIn::Query, "limit", "The most items that the page may have.", limit);
        self.parameter(limit)
    }

    fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }
}

fn optional_parameter(location: ParameterIn, name: &str, description: &str, schema: Object) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(location)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(Schema::Object(schema)))
        .build()
}
