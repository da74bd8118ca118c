//! The documentation of one route.

use actix_web::http::StatusCode;
use utoipa::{
    PartialSchema, ToSchema,
    openapi::{RefOr, path::Parameter, schema::Schema},
};

use crate::error::ErrorCode;

/// A schema with its name and the schemas that it refers to.
pub(crate) struct NamedSchema {
    pub(super) name: String,
    pub(super) schema: RefOr<Schema>,
    pub(super) referenced: Vec<(String, RefOr<Schema>)>,
}

impl NamedSchema {
    /// The description of the type.
    pub(super) fn description(&self) -> &str {
        let description = match &self.schema {
            RefOr::T(Schema::Object(object)) => object.description.as_deref(),
            RefOr::T(Schema::OneOf(one)) => one.description.as_deref(),
            RefOr::T(Schema::AllOf(all)) => all.description.as_deref(),
            _ => None,
        };
        description.unwrap_or_default()
    }
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
    /// A payload without the envelope, as another protocol has it.
    Bare(Box<NamedSchema>),
    /// A body of this content type without an envelope.
    Raw(&'static str),
    /// A file of any type.
    File,
}

/// A response besides the usual one that is no error.
pub(crate) struct OtherStatus {
    pub(super) status: StatusCode,
    pub(super) description: &'static str,
    /// The payload, if it is not that of the usual response.
    pub(super) payload: Option<Box<NamedSchema>>,
}

/// A parameter of the path with its values: its name, its description and the values.
pub(super) type PathChoice = (&'static str, &'static str, &'static [&'static str]);

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
    pub(super) other_statuses: Vec<OtherStatus>,
    pub(super) other_errors: Vec<(StatusCode, ErrorCode)>,
    pub(super) parameters: Vec<Parameter>,
    /// The schemas that parameters refer to.
    pub(super) parameter_schemas: Vec<NamedSchema>,
    /// The parameters of the path that may be any text.
    pub(super) any_path: Vec<&'static str>,
    /// The parameter of the path that is one of several values.
    pub(super) path_choice: Option<PathChoice>,
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
            parameter_schemas: Vec::new(),
            any_path: Vec::new(),
            path_choice: None,
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

    /// Another status that is no error, and its description. It has the payload of the usual response.
    pub(crate) fn also_status(mut self, status: StatusCode, description: &'static str) -> Self {
        self.other_statuses.push(OtherStatus { status, description, payload: None });
        self
    }

    /// Another status that is no error, with its description and a payload of its own.
    pub(crate) fn also_payload<T: ToSchema>(mut self, status: StatusCode, description: &'static str) -> Self {
        self.other_statuses.push(OtherStatus { status, description, payload: Some(schema::<T>()) });
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

    /// What the usual response is.
    pub(super) fn success_description(&self) -> &str {
        match &self.shape {
            ResponseShape::Envelope(schema) | ResponseShape::Bare(schema) => schema.description(),
            ResponseShape::Raw(_) | ResponseShape::File => self.summary,
        }
    }
}
