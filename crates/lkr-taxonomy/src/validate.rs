//! Converts nodes into categories and validates them. Each error names the line.

use std::collections::HashMap;

use crate::{
    Category,
    node::{Node, ParseError, Value},
};

const MAX_CATEGORIES: usize = 500;
const MAX_KEYWORDS: usize = 50;
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 2_000;

/// The name under which documents without a category are counted.
const RESERVED_NAME: &str = "uncategorized";

type Result<T> = std::result::Result<T, ParseError>;

/// A category and the lines of its id, name and parent, for errors found by comparing categories.
struct ParsedCategory {
    category: Category,
    id_line: usize,
    name_line: usize,
    parent_line: usize,
}

pub(crate) fn parse_categories(root: Node) -> Result<Vec<Category>> {
    let [list] = fields(root, "a taxonomy", ["categories"])?.1;
    let list = required(list, 1, "categories")?;
    let line = list.line;
    let items = self::list(list, "categories")?;
    if items.is_empty() {
        return Err(ParseError::new(line, "no category; a taxonomy needs at least one"));
    }
    if let Some(item) = items.get(MAX_CATEGORIES) {
        return Err(ParseError::new(item.line, format!("more than {MAX_CATEGORIES} categories")));
    }
    let parsed = items.into_iter().map(parse_category).collect::<Result<Vec<_>>>()?;
    check_unique(&parsed)?;
    check_parents(&parsed)?;
    Ok(parsed.into_iter().map(|parsed| parsed.category).collect())
}

fn parse_category(node: Node) -> Result<ParsedCategory> {
    let (line, [id, name, description, keywords, parent]) =
        fields(node, "a category", ["id", "name", "description", "keywords", "parent"])?;
    let (id_line, id) = text(required(id, line, "id")?, "id")?;
    check_id(id_line, "id", &id)?;
    let (name_line, name) = text(required(name, line, "name")?, "name")?;
    let name = one_line(name_line, "name", &name)?;
    if name.to_lowercase() == RESERVED_NAME {
        return Err(ParseError::new(
            name_line,
            format!("name {name:?} is reserved for documents without a category"),
        ));
    }
    let (description_line, description) = text(required(description, line, "description")?, "description")?;
    let description = trimmed_within(description_line, "description", &description, MAX_DESCRIPTION)?;
    let keywords = optional(keywords).map_or(Ok(Vec::new()), parse_keywords)?;
    let parent = optional(parent).map(|node| text(node, "parent")).transpose()?;
    let parent_line = parent.as_ref().map_or(line, |(line, _)| *line);
    let parent = parent.map(|(_, parent)| parent);
    let category = Category { id, name, description, keywords, parent };
    Ok(ParsedCategory { category, id_line, name_line, parent_line })
}

fn parse_keywords(node: Node) -> Result<Vec<String>> {
    let items = list(node, "keywords")?;
    if let Some(item) = items.get(MAX_KEYWORDS) {
        return Err(ParseError::new(item.line, format!("more than {MAX_KEYWORDS} keywords")));
    }
    let keyword = |item| {
        let (line, keyword) = text(item, "a keyword")?;
        one_line(line, "keyword", &keyword)
    };
    items.into_iter().map(keyword).collect()
}

fn check_unique(parsed: &[ParsedCategory]) -> Result<()> {
    let (mut ids, mut names) = (HashMap::new(), HashMap::new());
    for ParsedCategory { category, id_line, name_line, .. } in parsed {
        if let Some(before) = ids.insert(category.id.as_str(), id_line) {
            return Err(ParseError::new(
                *id_line,
                format!("id {:?} is already used on line {before}", category.id),
            ));
        }
        if let Some(before) = names.insert(category.name.to_lowercase(), name_line) {
            let name = &category.name;
            return Err(ParseError::new(
                *name_line,
                format!("name {name:?} is already used on line {before}"),
            ));
        }
    }
    Ok(())
}

/// Checks that every parent exists and that no category is its own ancestor.
fn check_parents(parsed: &[ParsedCategory]) -> Result<()> {
    let parents: HashMap<&str, Option<&str>> =
        parsed.iter().map(|entry| (entry.category.id.as_str(), entry.category.parent.as_deref())).collect();
    for ParsedCategory { category, parent_line, .. } in parsed {
        let Some(parent) = category.parent.as_deref() else { continue };
        if !parents.contains_key(parent) {
            return Err(ParseError::new(
                *parent_line,
                format!("parent {parent:?} is not the id of a category"),
            ));
        }
        let ancestors = std::iter::successors(Some(parent), |id| parents.get(id).copied().flatten());
        if ancestors.take(parsed.len()).any(|id| id == category.id) {
            return Err(ParseError::new(
                *parent_line,
                format!("parents form a cycle: {:?} is its own ancestor", category.id),
            ));
        }
    }
    Ok(())
}

/// The line of a mapping and its values, in the order of `keys`.
fn fields<const N: usize>(node: Node, subject: &str, keys: [&str; N]) -> Result<(usize, [Option<Node>; N])> {
    let Value::Map(entries) = node.value else {
        return Err(wrong_type(node.line, subject, "a mapping", &node.value));
    };
    let mut found = [const { None }; N];
    for (key, value) in entries {
        let slot = keys.iter().zip(&mut found).find(|(name, _)| **name == key.name);
        let Some((_, slot)) = slot else {
            let known = keys.join(", ");
            return Err(ParseError::new(
                key.line,
                format!("unknown key {:?}; {subject} has the keys {known}", key.name),
            ));
        };
        if slot.replace(value).is_some() {
            return Err(ParseError::new(key.line, format!("key {:?} is repeated", key.name)));
        }
    }
    Ok((node.line, found))
}

fn required(node: Option<Node>, line: usize, key: &str) -> Result<Node> {
    match node {
        Some(Node { value: Value::Null, line }) => Err(ParseError::new(line, format!("{key} has no value"))),
        Some(node) => Ok(node),
        None => Err(ParseError::new(line, format!("{key} is missing"))),
    }
}

fn optional(node: Option<Node>) -> Option<Node> {
    node.filter(|node| !matches!(node.value, Value::Null))
}

fn list(node: Node, subject: &str) -> Result<Vec<Node>> {
    match node.value {
        Value::List(items) => Ok(items),
        value => Err(wrong_type(node.line, subject, "a list", &value)),
    }
}

fn text(node: Node, subject: &str) -> Result<(usize, String)> {
    match node.value {
        Value::Text(text) => Ok((node.line, text)),
        value => Err(wrong_type(node.line, subject, "a text", &value)),
    }
}

fn wrong_type(line: usize, subject: &str, expected: &str, value: &Value) -> ParseError {
    let hint = match value {
        Value::Number | Value::Bool if expected == "a text" => "; put it in quotes",
        _ => "",
    };
    ParseError::new(line, format!("{subject} must be {expected}, not {}{hint}", value.type_name()))
}

fn check_id(line: usize, subject: &str, id: &str) -> Result<()> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if id.is_empty() || id.len() > MAX_NAME || !id.chars().all(allowed) {
        return Err(ParseError::new(
            line,
            format!("{subject} {id:?} is not 1 to {MAX_NAME} characters of a-z 0-9 - _ ."),
        ));
    }
    Ok(())
}

fn one_line(line: usize, subject: &str, text: &str) -> Result<String> {
    let text = trimmed_within(line, subject, text, MAX_NAME)?;
    if text.contains(char::is_control) {
        return Err(ParseError::new(line, format!("{subject} {text:?} contains a control character")));
    }
    Ok(text)
}

fn trimmed_within(line: usize, subject: &str, text: &str, max_chars: usize) -> Result<String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(ParseError::new(line, format!("{subject} is blank")));
    }
    let length = text.chars().count();
    if length > max_chars {
        return Err(ParseError::new(
            line,
            format!("{subject} has {length} characters, more than {max_chars}"),
        ));
    }
    Ok(text.to_owned())
}
