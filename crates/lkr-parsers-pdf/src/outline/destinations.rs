use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
};

use super::{Id, Objects, Value};

/// Most nodes of the page tree and of the name tree.
const MAX_NODES: usize = 200_000;

/// Resolves the destinations of an outline.
pub(crate) struct Destinations<'a> {
    objects: &'a dyn Objects,
    pages: HashMap<Id, usize>,
    names: OnceCell<HashMap<Vec<u8>, Value>>,
}

impl<'a> Destinations<'a> {
    pub(crate) fn new(objects: &'a dyn Objects) -> Self {
        Self { objects, pages: pages(objects), names: OnceCell::new() }
    }

    /// The page, from 0, and the top of a destination.
    pub(crate) fn find(&self, target: &Value) -> Option<(usize, Option<f32>)> {
        match target {
            Value::Array(items) => self.explicit(items),
            Value::Dictionary(_) => self.explicit(self.objects.get(target, "D")?.items()),
            _ => {
                let names = self.names.get_or_init(|| names(self.objects));
                let named = self.objects.resolve(names.get(target.bytes()?)?)?;
                match named {
                    Value::Dictionary(_) => self.explicit(self.objects.get(&named, "D")?.items()),
                    named => self.explicit(named.items()),
                }
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a negative number is no page"
    )]
    fn explicit(&self, items: &[Value]) -> Option<(usize, Option<f32>)> {
        let page = match items.first()? {
            Value::Reference(id) => *self.pages.get(id)?,
            Value::Number(page) if *page >= 0.0 => *page as usize,
            _ => return None,
        };
        let top = match items.get(1).and_then(Value::bytes) {
            Some(b"XYZ") => items.get(3),
            Some(b"FitH" | b"FitBH") => items.get(2),
            Some(b"FitR") => items.get(5),
            _ => None,
        };
        Some((page, top.and_then(|top| self.objects.resolve(top)?.number())))
    }
}

/// The indexes of the pages.
fn pages(objects: &dyn Objects) -> HashMap<Id, usize> {
    let mut pages = HashMap::new();
    let mut visited = HashSet::new();
    let mut open: Vec<Id> =
        objects.catalog().and_then(|catalog| catalog.reference("Pages")).into_iter().collect();
    while let Some(id) = open.pop() {
        if visited.len() >= MAX_NODES || !visited.insert(id) {
            continue;
        }
        let Some(node) = objects.object(id) else { continue };
        match objects.get(&node, "Kids") {
            Some(kids) => open.extend(kids.items().iter().rev().filter_map(|kid| match kid {
                Value::Reference(id) => Some(*id),
                _ => None,
            })),
            None => {
                let place = pages.len();
                pages.insert(id, place);
            }
        }
    }
    pages
}

/// The named destinations of the catalog and of the name tree.
fn names(objects: &dyn Objects) -> HashMap<Vec<u8>, Value> {
    let mut names = HashMap::new();
    let Some(catalog) = objects.catalog() else { return names };
    if let Some(Value::Dictionary(entries)) = objects.get(&catalog, "Dests") {
        names.extend(entries);
    }
    let tree = objects.get(&catalog, "Names").and_then(|all| objects.get(&all, "Dests"));
    let mut open: Vec<Value> = tree.into_iter().collect();
    let mut nodes = 0;
    while let Some(node) = open.pop() {
        nodes += 1;
        if nodes > MAX_NODES || names.len() > MAX_NODES {
            break;
        }
        if let Some(pairs) = objects.get(&node, "Names") {
            for pair in pairs.items().chunks_exact(2) {
                if let [name, target] = pair
                    && let Some(name) = objects.resolve(name)
                    && let Some(name) = name.bytes()
                {
                    names.insert(name.to_vec(), target.clone());
                }
            }
        }
        if let Some(kids) = objects.get(&node, "Kids") {
            open.extend(kids.items().iter().filter_map(|kid| objects.resolve(kid)));
        }
    }
    names
}
