//! The schemas of the envelope around responses.

use serde_json::{Value, json};
use utoipa::openapi::{
    RefOr,
    schema::{ObjectBuilder, Schema, SchemaType, Type},
};

use crate::error::ErrorCode;

/// The schema of error responses.
pub(super) fn error_envelope() -> Schema {
    let listed: Vec<_> = ErrorCode::all().map(|code| format!("{} {}", code.number(), code.name())).collect();
    let codes = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .enum_values(Some(ErrorCode::all().map(|code| json!(code.number()))))
        .description(Some(format!("The code of the error: {}.", listed.join(", "))));
    let null =
        ObjectBuilder::new().schema_type(SchemaType::new(Type::Null)).description(Some("Always null."));
    envelope_of("An error.", codes.build().into(), RefOr::T(null.build().into()))
}

/// The schema of a response with this code and payload.
pub(super) fn envelope(code: Value, data: RefOr<Schema>) -> Schema {
    let code = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .enum_values(Some([code]))
        .description(Some("0 means success."));
    envelope_of("The envelope around a payload.", code.build().into(), data)
}

fn envelope_of(description: &str, code: Schema, data: RefOr<Schema>) -> Schema {
    let text = |description: &str| {
        ObjectBuilder::new().schema_type(Type::String).description(Some(description)).build()
    };
    let object = ObjectBuilder::new()
        .description(Some(description))
        .property("code", code)
        .property("message", text("ok, or what went wrong. It is meant for people and may change."))
        .property("data", data)
        .property("request_id", text("The request's id in the log."));
    let required = ["code", "message", "data", "request_id"];
    Schema::Object(required.into_iter().fold(object, ObjectBuilder::required).build())
}
