use std::collections::HashMap;

use lopdf::{Dictionary, Object, ObjectId, Stream};

use super::{MAX_DEPTH, MAX_STREAM, Open, ink::CLEAR};

/// Tells the pages that may hide text from those that cannot, by what they refer to: that takes next to no time.
pub(super) struct Suspicion<'a> {
    open: &'a Open,
    /// Whether text that is not drawn counts. Contents are unpacked for that.
    undrawn: bool,
    resources: HashMap<*const Dictionary, bool>,
    forms: HashMap<ObjectId, bool>,
}

impl<'a> Suspicion<'a> {
    pub(super) fn new(open: &'a Open, undrawn: bool) -> Self {
        Self { open, undrawn, resources: HashMap::new(), forms: HashMap::new() }
    }

    pub(super) fn page(&mut self, page: ObjectId) -> bool {
        // The engine that does not tell undrawn text does not tell either where pale text stands on a page that is turned.
        let resources = self.open.inherited(page, b"Resources");
        (self.undrawn && self.open.is_turned(page))
            || resources.is_some_and(|resources| self.resources(resources, 0))
            || (self.undrawn && self.open.content(page).is_ok_and(|content| sets_undrawn(&content)))
    }

    fn resources(&mut self, resources: &'a Dictionary, depth: usize) -> bool {
        let key = std::ptr::from_ref(resources);
        if let Some(known) = self.resources.get(&key) {
            return *known;
        }
        self.resources.insert(key, false);
        let document = &self.open.document;
        let kind = |kind: &[u8]| resources.get_deref(kind, document).and_then(Object::as_dict);
        let has_layers = !self.open.layers.is_empty();
        let found = (has_layers && kind(b"Properties").is_ok())
            || kind(b"ExtGState").is_ok_and(|states| states.iter().any(|(_, state)| self.is_clear(state)))
            || kind(b"XObject")
                .is_ok_and(|objects| objects.iter().any(|(_, object)| self.object(object, depth)));
        self.resources.insert(key, found);
        found
    }

    /// Whether a graphics state lets nothing cover anything.
    fn is_clear(&self, state: &Object) -> bool {
        let document = &self.open.document;
        let Ok((_, Object::Dictionary(state))) = document.dereference(state) else { return false };
        let is_clear = |key: &[u8]| {
            state.get_deref(key, document).and_then(Object::as_float).is_ok_and(|alpha| alpha < CLEAR)
        };
        is_clear(b"ca") || is_clear(b"CA")
    }

    fn object(&mut self, object: &'a Object, depth: usize) -> bool {
        let Ok((Some(id), Object::Stream(object))) = self.open.document.dereference(object) else {
            return false;
        };
        if let Some(known) = self.forms.get(&id) {
            return *known;
        }
        self.forms.insert(id, false);
        let found = (!self.open.layers.is_empty() && object.dict.has(b"OC")) || self.form(object, depth);
        self.forms.insert(id, found);
        found
    }

    fn form(&mut self, form: &'a Stream, depth: usize) -> bool {
        let document = &self.open.document;
        if form.dict.get_deref(b"Subtype", document).and_then(Object::as_name).unwrap_or_default() != b"Form"
        {
            return false;
        }
        let own = form.dict.get_deref(b"Resources", document).and_then(Object::as_dict);
        let of_own = depth < MAX_DEPTH && own.is_ok_and(|own| self.resources(own, depth + 1));
        of_own
            || (self.undrawn
                && form.get_plain_content_with_limit(MAX_STREAM).is_ok_and(|content| sets_undrawn(&content)))
    }
}

/// Whether content sets the text rendering mode to one that draws nothing. It may be wrong where `Tr` is no operator.
fn sets_undrawn(content: &[u8]) -> bool {
    let operators = content.windows(2).enumerate().filter(|(_, pair)| *pair == b"Tr");
    let mut numbers =
        operators.filter_map(|(at, _)| content.get(at.saturating_sub(8)..at)?.trim_ascii_end().last());
    // `3.0` is a mode too, and `0` none that hides.
    numbers.any(|last| matches!(last, b'3' | b'7' | b'.')) || content.windows(5).any(|part| part == b".0 Tr")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_draw_nothing_are_found() {
        for content in ["3 Tr", "BT 3\nTr", "7 Tr (a) Tj", "0 Tr 3  Tr", "3.0 Tr", "3. Tr"] {
            assert!(sets_undrawn(content.as_bytes()), "{content}");
        }
        for content in ["", "Tr", "0 Tr", "BT 2 Tr", "(True) Tj", "3 Tf"] {
            assert!(!sets_undrawn(content.as_bytes()), "{content}");
        }
    }
}
