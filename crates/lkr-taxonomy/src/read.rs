//! Nodes to categories: the form of the file and what it means, with the line of whatever is wrong.

use std::collections::HashMap;

use crate::{
    Category,
    node::{Fault, Node, Value},
};

const MAX_CATEGORIES: usize = 500;
const MAX_KEYWORDS: usize = 50;
const MAX_NAME: usize = 64;
const MAX_DESCRIPTION: usize = 2_000;

/// What documents without a category are counted under.
const TAKEN: &str = "uncategorized";

type Result<T> = std::result::Result<T, Fault>;

/// A category and the lines that what it says about others stands on.
struct Read {
    category: Category,
    id_line: usize,
    name_line: usize,
    parent_line: usize,
}

pub(crate) fn categories(root: Node) -> Result<Vec<Category>> {
    let [list] = fields(root, "a taxonomy", ["categories"])?.1;
    let list = required(list, 1, "categories")?;
    let line = list.line;
    let items = self::list(list, "categories")?;
    if items.is_empty() {
        return Err(Fault::new(line, "no category; a taxonomy has at least one"));
    }
    if let Some(item) = items.get(MAX_CATEGORIES) {
        return Err(Fault::new(item.line, format!("more than {MAX_CATEGORIES} categories")));
    }
    let read = items.into_iter().map(category).collect::<Result<Vec<_>>>()?;
    check_unique(&read)?;
    check_parents(&read)?;
    Ok(read.into_iter().map(|read| read.category).collect())
}

fn category(node: Node) -> Result<Read> {
    let (line, [id, name, description, keywords, parent]) =
        fields(node, "a category", ["id", "name", "description", "keywords", "parent"])?;
    let (id_line, id) = text(required(id, line, "id")?, "id")?;
    check_id(id_line, "id", &id)?;
    let (name_line, name) = text(required(name, line, "name")?, "name")?;
    let name = one_line(name_line, "name", &name)?;
    if name.to_lowercase() == TAKEN {
        return Err(Fault::new(name_line, format!("name {name:?} stands for documents without a category")));
    }
    let (at, description) = text(required(description, line, "description")?, "description")?;
    let description = bounded(at, "description", &description, MAX_DESCRIPTION)?;
    let keywords = optional(keywords).map_or(Ok(Vec::new()), keywords_of)?;
    let parent = optional(parent).map(|node| text(node, "parent")).transpose()?;
    let parent_line = parent.as_ref().map_or(line, |(line, _)| *line);
    let parent = parent.map(|(_, parent)| parent);
    let category = Category { id, name, description, keywords, parent };
    Ok(Read { category, id_line, name_line, parent_line })
}

fn keywords_of(node: Node) -> Result<Vec<String>> {
    let items = list(node, "keywords")?;
    if let Some(item) = items.get(MAX_KEYWORDS) {
        return Err(Fault::new(item.line, format!("more than {MAX_KEYWORDS} keywords")));
    }
    let keyword = |item| {
        let (line, keyword) = text(item, "a keyword")?;
        one_line(line, "keyword", &keyword)
    };
    items.into_iter().map(keyword).collect()
}

fn check_unique(read: &[Read]) -> Result<()> {
    let (mut ids, mut names) = (HashMap::new(), HashMap::new());
    for Read { category, id_line, name_line, .. } in read {
        if let Some(before) = ids.insert(category.id.as_str(), id_line) {
            return Err(Fault::new(*id_line, format!("id {:?} is that of line {before} too", category.id)));
        }
        if let Some(before) = names.insert(category.name.to_lowercase(), name_line) {
            let name = &category.name;
            return Err(Fault::new(*name_line, format!("name {name:?} is that of line {before} too")));
        }
    }
    Ok(())
}

/// Every parent is there, and nothing is part of itself.
fn check_parents(read: &[Read]) -> Result<()> {
    let parents: HashMap<&str, Option<&str>> =
        read.iter().map(|read| (read.category.id.as_str(), read.category.parent.as_deref())).collect();
    for Read { category, parent_line, .. } in read {
        let Some(parent) = category.parent.as_deref() else { continue };
        if !parents.contains_key(parent) {
            return Err(Fault::new(*parent_line, format!("parent {parent:?} is no category's id")));
        }
        let above = std::iter::successors(Some(parent), |id| parents.get(id).copied().flatten());
        if above.take(read.len()).any(|id| id == category.id) {
            return Err(Fault::new(*parent_line, format!("{:?} is above itself", category.id)));
        }
    }
    Ok(())
}

/// The values of a mapping by the keys that it may have, and its line.
fn fields<const N: usize>(node: Node, what: &str, keys: [&str; N]) -> Result<(usize, [Option<Node>; N])> {
    let Value::Map(entries) = node.value else {
        return Err(wrong(node.line, what, "a mapping", &node.value));
    };
    let mut found = [const { None }; N];
    for (key, value) in entries {
        let slot = keys.iter().zip(&mut found).find(|(name, _)| **name == key.name);
        let Some((_, slot)) = slot else {
            let known = keys.join(", ");
            return Err(Fault::new(key.line, format!("unknown key {:?}; {what} has {known}", key.name)));
        };
        if slot.replace(value).is_some() {
            return Err(Fault::new(key.line, format!("key {:?} stands here a second time", key.name)));
        }
    }
    Ok((node.line, found))
}

fn required(node: Option<Node>, line: usize, key: &str) -> Result<Node> {
    match node {
        Some(Node { value: Value::Null, line }) => Err(Fault::new(line, format!("{key} has no value"))),
        Some(node) => Ok(node),
        None => Err(Fault::new(line, format!("{key} is missing"))),
    }
}

fn optional(node: Option<Node>) -> Option<Node> {
    node.filter(|node| !matches!(node.value, Value::Null))
}

fn list(node: Node, what: &str) -> Result<Vec<Node>> {
    match node.value {
        Value::List(items) => Ok(items),
        value => Err(wrong(node.line, what, "a list", &value)),
    }
}

fn text(node: Node, what: &str) -> Result<(usize, String)> {
    match node.value {
        Value::Text(text) => Ok((node.line, text)),
        value => Err(wrong(node.line, what, "a text", &value)),
    }
}

fn wrong(line: usize, what: &str, wanted: &str, value: &Value) -> Fault {
    let hint = match value {
        Value::Number | Value::Bool if wanted == "a text" => "; put it in quotes",
        _ => "",
    };
    Fault::new(line, format!("{what} is {wanted}, not {}{hint}", value.what()))
}

fn check_id(line: usize, what: &str, id: &str) -> Result<()> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_.".contains(c);
    if id.is_empty() || id.len() > MAX_NAME || !id.chars().all(good) {
        return Err(Fault::new(line, format!("{what} {id:?} is not 1 to {MAX_NAME} of a-z 0-9 - _ .")));
    }
    Ok(())
}

fn one_line(line: usize, what: &str, text: &str) -> Result<String> {
    let text = bounded(line, what, text, MAX_NAME)?;
    if text.contains(char::is_control) {
        return Err(Fault::new(line, format!("{what} {text:?} has a control character")));
    }
    Ok(text)
}

fn bounded(line: usize, what: &str, text: &str, most: usize) -> Result<String> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Fault::new(line, format!("{what} is blank")));
    }
    let length = text.chars().count();
    if length > most {
        return Err(Fault::new(line, format!("{what} has {length} characters, more than {most}")));
    }
    Ok(text.to_owned())
}
