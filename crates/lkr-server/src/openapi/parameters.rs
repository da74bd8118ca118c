//! The documented parameters of a route.

use std::ops::RangeInclusive;

use serde_json::json;
use utoipa::{
    ToSchema,
    openapi::{
        Content, Ref, Required,
        path::{Parameter, ParameterBuilder, ParameterIn},
        schema::{Object, ObjectBuilder, Schema, Type},
    },
};

use super::operation::{NamedSchema, OperationDoc, schema};

const ID: &str = "^[0-9a-f]{32}$";
const USERNAME: &str = "^[A-Za-z0-9._@-]{3,64}$";
const SPACE: &str = "^[a-z0-9][a-z0-9._-]{0,63}$";
const MEMBER: &str = "^(user|group):[A-Za-z0-9._@-]{1,64}$";

/// An id in examples.
const EXAMPLE_ID: &str = "0199f0c2a4b87d3e9a51c6f7e8d90b1a";

/// A parameter in paths: its name, its pattern, its description and an example.
type PathParameter = (&'static str, &'static str, &'static str, &'static str);

const PATH_PARAMETERS: [PathParameter; 9] = [
    ("doc_id", ID, "The id of the document.", EXAMPLE_ID),
    ("n", "", "The number of the page, from 1.", "1"),
    ("task_id", ID, "The id of the task.", EXAMPLE_ID),
    ("id", ID, "The id that the listing shows.", EXAMPLE_ID),
    ("username", USERNAME, "The name of the account, case-insensitive.", "ada"),
    ("space", SPACE, "The name of the space.", "legal"),
    ("group", SPACE, "The name of the group.", "lawyers"),
    ("asset", "", "The name of the file.", "icon.svg"),
    ("member", MEMBER, "`user:` and a username, or `group:` and the name of a group.", "user:ada"),
];

/// The parameters of a path.
pub(super) fn path_parameters(path: &str, doc: &OperationDoc) -> impl Iterator<Item = Parameter> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        let fixed = PATH_PARAMETERS.into_iter().find(|(known, ..)| *known == name);
        let (_, pattern, description, example) = fixed.unwrap_or((name, "", "", ""));
        let choice = doc.path_choice.filter(|(known, ..)| *known == name);
        let text = ObjectBuilder::new().schema_type(Type::String);
        let (text, description, example) = match choice {
            Some((_, description, values)) => (
                text.enum_values(Some(values.iter().copied())),
                description,
                values.first().copied().unwrap_or_default(),
            ),
            None if doc.any_path.contains(&name) || pattern.is_empty() => (text, description, example),
            None => (text.pattern(Some(pattern)), description, example),
        };
        ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Path)
            .required(Required::True)
            .description(Some(description))
            .schema(Some(Schema::Object(text.build())))
            .example(Some(json!(example)))
            .build()
    })
}

impl OperationDoc {
    /// A parameter of the path that may be any text: one that names nothing is answered as what does not exist.
    pub(crate) fn any_text(mut self, parameter: &'static str) -> Self {
        self.any_path.push(parameter);
        self
    }

    /// A parameter of the path that is one of these values.
    pub(crate) fn path_choice(
        self,
        name: &'static str,
        description: &'static str,
        values: &'static [&'static str],
    ) -> Self {
        Self { path_choice: Some((name, description, values)), ..self }
    }

    /// An optional query parameter of type string.
    pub(crate) fn query_text(self, name: &str, description: &str) -> Self {
        self.parameter(optional(ParameterIn::Query, name, description, text().build()))
    }

    /// An optional query parameter that is one of these values.
    pub(crate) fn query_choice<'a>(
        self,
        name: &str,
        description: &str,
        values: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let choice = text().enum_values(Some(values)).build();
        self.parameter(optional(ParameterIn::Query, name, description, choice))
    }

    /// The optional query parameter `space`.
    pub(crate) fn query_space(self, description: &str) -> Self {
        let name = text().pattern(Some(SPACE)).build();
        self.parameter(optional(ParameterIn::Query, "space", description, name))
    }

    /// An optional query parameter with what names an object of a listing.
    pub(crate) fn query_object(self, name: &str, description: &str, of: CursorOf) -> Self {
        let key = text().pattern(Some(format!("^{}", of.pattern()))).build();
        self.parameter(optional(ParameterIn::Query, name, description, key))
    }

    /// An optional query parameter with JSON of this schema.
    pub(crate) fn query_json<T: ToSchema>(mut self, name: &str, description: &str) -> Self {
        let named = schema::<T>();
        let content = Content::new(Some(Ref::from_schema_name(&named.name)));
        self.parameter_schemas.push(*named);
        let parameter = ParameterBuilder::new()
            .name(name)
            .parameter_in(ParameterIn::Query)
            .required(Required::False)
            .description(Some(description))
            .content("application/json", content);
        self.parameter(parameter.build())
    }

    /// An optional request header, and its description.
    pub(crate) fn request_header(self, name: &str, description: &str) -> Self {
        self.parameter(optional(ParameterIn::Header, name, description, text().build()))
    }

    /// The optional request header `Idempotency-Key`.
    pub(crate) fn idempotency_key(self, name: &str, description: &str, max_chars: usize) -> Self {
        let key = text().min_length(Some(1)).max_length(Some(max_chars)).build();
        self.parameter(optional(ParameterIn::Header, name, description, key))
    }

    /// The query parameters `limit` and `offset`. Cursors begin with the letter of the listing, and `last` is the pattern of
    /// what follows it.
    pub(crate) fn paged(self, letter: char, last: CursorOf) -> Self {
        self.query_limit().query_cursor(letter, last)
    }

    /// The optional query parameter `offset` of a listing.
    pub(crate) fn query_cursor(self, letter: char, last: CursorOf) -> Self {
        let cursor = text().pattern(Some(format!("^{letter}{}", last.pattern()))).build();
        let description = "The cursor next_offset of the previous page.";
        self.parameter(optional(ParameterIn::Query, "offset", description, cursor))
    }

    /// The optional query parameter `limit`.
    pub(crate) fn query_limit(self) -> Self {
        self.query_number("limit", "The most items that the page may have.", 1..=100, 20)
    }

    /// An optional query parameter that is a whole number.
    pub(crate) fn query_number(
        self,
        name: &str,
        description: &str,
        range: RangeInclusive<u32>,
        default: u32,
    ) -> Self {
        let number = ObjectBuilder::new()
            .schema_type(Type::Integer)
            .minimum(Some(*range.start()))
            .maximum(Some(*range.end()))
            .default(Some(json!(default)))
            .build();
        self.parameter(optional(ParameterIn::Query, name, description, number))
    }

    /// A required query parameter that is a position in a text.
    pub(crate) fn query_position(self, name: &str, description: &str) -> Self {
        let position =
            ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0)).maximum(Some(u32::MAX));
        let mut parameter = optional(ParameterIn::Query, name, description, position.build());
        parameter.required = Required::True;
        self.parameter(parameter)
    }

    fn parameter(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// The schemas that parameters refer to.
    pub(super) fn parameter_schemas(&self) -> impl Iterator<Item = &NamedSchema> {
        self.parameter_schemas.iter()
    }
}

/// What the last item of a page is, by which its cursor continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorOf {
    /// An item with an id.
    Id,
    /// An item with a position.
    Position,
    /// A space or a group.
    Name,
    /// An account.
    Username,
    /// An item that any text may come after.
    Text,
}

impl CursorOf {
    /// The pattern of the text after the letter.
    const fn pattern(self) -> &'static str {
        match self {
            Self::Id => "[0-9a-f]{32}$",
            Self::Position => "(0|[1-9][0-9]{0,8})$",
            Self::Name => "[a-z0-9][a-z0-9._-]{0,63}$",
            Self::Username => "[A-Za-z0-9._@-]{3,64}$",
            Self::Text => "",
        }
    }
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn optional(location: ParameterIn, name: &str, description: &str, schema: Object) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(location)
        .required(Required::False)
        .description(Some(description))
        .schema(Some(Schema::Object(schema)))
        .build()
}
