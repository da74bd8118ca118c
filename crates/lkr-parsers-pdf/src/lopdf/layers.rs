//! Optional content: the layers that are off by default.

use std::collections::HashSet;

use lopdf::{Dictionary, Document, Object, ObjectId};

/// Most levels of nested expressions.
const MAX_DEPTH: usize = 8;

/// A membership or an expression with more parts counts as visible.
const MAX_PARTS: usize = 256;

/// The groups that are off by default.
#[derive(Debug, Default)]
pub(super) struct Layers {
    off: HashSet<ObjectId>,
}

impl Layers {
    pub(super) fn new(document: &Document) -> Self {
        Self { off: off(document).unwrap_or_default() }
    }

    /// Whether no group is off.
    pub(super) fn is_empty(&self) -> bool {
        self.off.is_empty()
    }

    /// Whether content of this group or membership is hidden.
    pub(super) fn hide(&self, document: &Document, content: &Object) -> bool {
        !self.is_empty() && !self.shows(document, content).unwrap_or(true)
    }

    fn shows(&self, document: &Document, content: &Object) -> Option<bool> {
        if self.is_off(content) {
            return Some(false);
        }
        let membership = document.dereference(content).ok()?.1.as_dict().ok()?;
        let mut parts = MAX_PARTS;
        if let Ok(Object::Array(expression)) = membership.get_deref(b"VE", document) {
            return self.value(document, expression, &mut parts, 0);
        }
        let groups = membership.get(b"OCGs").ok()?;
        let groups = match document.dereference(groups).ok()?.1 {
            Object::Array(groups) => groups.as_slice(),
            _ => std::slice::from_ref(groups),
        };
        let groups = groups.get(..groups.len().min(MAX_PARTS)).unwrap_or_default();
        // Objects that are not groups do not count, and a membership without groups shows its content.
        let is_group = |group: &&Object| {
            document.dereference(group).is_ok_and(|(id, group)| id.is_some() && group.as_dict().is_ok())
        };
        let groups: Vec<&Object> = groups.iter().filter(is_group).collect();
        let mut off = groups.iter().map(|group| self.is_off(group));
        match membership.get_deref(b"P", document).and_then(Object::as_name).unwrap_or(b"AnyOn") {
            _ if groups.is_empty() => Some(true),
            b"AllOn" => Some(!off.any(|off| off)),
            b"AnyOff" => Some(off.any(|off| off)),
            b"AllOff" => Some(off.all(|off| off)),
            _ => Some(!off.all(|off| off)),
        }
    }

    fn is_off(&self, group: &Object) -> bool {
        group.as_reference().is_ok_and(|id| self.off.contains(&id))
    }

    /// The value of an expression; `None` if it is invalid or too large.
    fn value(
        &self,
        document: &Document,
        expression: &[Object],
        parts: &mut usize,
        depth: usize,
    ) -> Option<bool> {
        let (operator, operands) = expression.split_first()?;
        let mut values = Vec::new();
        for operand in operands {
            *parts = parts.checked_sub(1)?;
            values.push(match document.dereference(operand).ok()?.1 {
                Object::Array(inner) if depth < MAX_DEPTH => self.value(document, inner, parts, depth + 1)?,
                Object::Dictionary(_) => !self.is_off(operand),
                _ => return None,
            });
        }
        match operator.as_name().ok()? {
            b"And" => Some(values.iter().all(|value| *value)),
            b"Or" => Some(values.iter().any(|value| *value)),
            b"Not" => values.first().map(|value| !value),
            _ => None,
        }
    }
}

fn off(document: &Document) -> Option<HashSet<ObjectId>> {
    let properties = document.catalog().ok()?.get_deref(b"OCProperties", document).ok()?.as_dict().ok()?;
    let default = properties.get_deref(b"D", document).ok()?.as_dict().ok()?;
    let base = default.get_deref(b"BaseState", document).and_then(Object::as_name);
    if base.is_ok_and(|base| base == b"OFF") {
        let on = groups(document, default, b"ON");
        return Some(groups(document, properties, b"OCGs").difference(&on).copied().collect());
    }
    Some(groups(document, default, b"OFF"))
}

fn groups(document: &Document, holder: &Dictionary, key: &[u8]) -> HashSet<ObjectId> {
    let groups = holder.get_deref(key, document).and_then(Object::as_array);
    groups.into_iter().flatten().filter_map(|group| group.as_reference().ok()).collect()
}
