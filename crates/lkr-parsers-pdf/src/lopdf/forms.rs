//! Form XObjects: content that pages and other forms draw.

use std::rc::Rc;

use lopdf::{Dictionary, Object, ObjectId, Stream};

use super::{
    content::{Interpreter, PageInterpreter},
    ink::Inks,
    matrix::Matrix,
    painted_areas::PaintedAreas,
    state::{State, numbers},
    streams,
    text::{OperationPosition, TextVisibility},
    tokens::Operation,
};

/// Most levels of nested forms.
const MAX_DEPTH: usize = 32;

/// Most bytes of unpacked forms in the cache.
const MAX_SAVED_STATES: usize = 64 * 1024 * 1024;

/// An unpacked form.
pub(super) struct Form<'a> {
    content: Vec<u8>,
    resources: Option<&'a Dictionary>,
    matrix: Matrix,
    /// Whether its bounding box is empty, so that it is invisible.
    is_cut_away: bool,
}

/// The cached painted areas of a form without text.
pub(super) struct Textless {
    /// The painted areas with their colours and line width; `None` if unknown.
    paints: Option<(Inks, f32, PaintedAreas)>,
}

impl<'a> Interpreter<'a> {
    /// The form with this number; `None` if it cannot be unpacked.
    fn form(&mut self, id: ObjectId, form: &'a Stream) -> Option<Rc<Form<'a>>> {
        if let Some(form) = self.forms.get(&id) {
            return Some(Rc::clone(form));
        }
        let content = streams::unpacked(form).ok()?;
        let document = self.document;
        let resources = form.dict.get_deref(b"Resources", document).and_then(Object::as_dict).ok();
        let array = |key: &[u8]| form.dict.get_deref(key, document).and_then(Object::as_array).ok();
        let matrix =
            array(b"Matrix").and_then(|matrix| numbers(matrix)).unwrap_or([1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        let edges = array(b"BBox").filter(|edges| edges.len() == 4).and_then(|edges| numbers::<4>(edges));
        let is_cut_away = edges.is_some_and(|[left, bottom, right, top]| left == right || bottom == top);
        self.kept += content.len();
        let form = Rc::new(Form { content, resources, matrix: Matrix::new(matrix), is_cut_away });
        if self.kept > MAX_SAVED_STATES {
            self.forms.clear();
            self.kept = form.content.len();
        }
        self.forms.insert(id, Rc::clone(&form));
        Some(form)
    }
}

impl<'a> PageInterpreter<'_, 'a> {
    /// Draws a form or an image.
    pub(super) fn object(
        &mut self,
        operation: &Operation<'_>,
        resources: Option<&'a Dictionary>,
        state: &State,
        at: OperationPosition,
    ) -> Option<()> {
        let document = self.interpreter.document;
        let (id, object) =
            self.resource(resources, b"XObject", operation.operands.last()?.as_name().ok()?)?;
        let (id, object) = (id?, object.as_stream().ok()?);
        let is_off = state.is_off || object.dict.get(b"OC").is_ok_and(|layer| self.hides(layer));
        if object.dict.get_deref(b"Subtype", document).ok()?.as_name().ok()? != b"Form" {
            if !is_off && state.is_shown() && !state.inks.fill_is_clear() {
                self.paths.square(state.page);
            }
            return None;
        }
        self.content_of.draws.insert((at.form, id));
        let (before, painted_areas) = (self.content_of.texts.len(), self.paths.painted_areas.size());
        self.form(id, object, resources, &State { is_off, ..state.clone() });
        let texts = self.content_of.texts.get(before..).unwrap_or_default();
        let is_clear = is_off || state.inks.fill_is_clear();
        // Its painted areas may be visible although its text is not.
        let is_unseen = at.form.is_none() && is_clear && painted_areas == self.paths.painted_areas.size();
        if is_unseen
            && !texts.is_empty()
            && texts.iter().all(|text| text.visibility == TextVisibility::Hidden)
        {
            self.content_of.invisible.push((at, before..self.content_of.texts.len()));
        }
        Some(())
    }

    fn form(
        &mut self,
        id: ObjectId,
        form: &'a Stream,
        resources: Option<&'a Dictionary>,
        state: &State,
    ) -> Option<()> {
        if self.open.contains(&id) {
            self.left_out += 1;
            return None;
        }
        let Some(form) = self.interpreter.form(id, form).filter(|_| self.open.len() < MAX_DEPTH) else {
            self.content_of.is_partial = true;
            return None;
        };
        let resources = form.resources.or(resources);
        let key = (id, resources.map_or(std::ptr::null(), std::ptr::from_ref));
        let page = form.matrix.then(state.page);
        let (inks, is_cut_away) = (state.inks.in_form(), state.is_cut_away || form.is_cut_away);
        let state = State { page, inks, is_cut_away, ..state.clone() };
        self.open.push(id);
        if self.textless.contains_key(&key) {
            self.repeat(&form, resources, &state, key);
        } else {
            let before = (self.shows, self.left_out);
            self.content(&form.content, resources, &state);
            if before == (self.shows, self.left_out) {
                self.textless.insert(key, Textless { paints: None });
            }
        }
        self.open.pop();
        Some(())
    }

    /// Paints a form without text from the cache. Plans draw their symbols thousands of times.
    fn repeat(
        &mut self,
        form: &Form<'a>,
        resources: Option<&'a Dictionary>,
        state: &State,
        key: (ObjectId, *const Dictionary),
    ) {
        if !state.is_shown() {
            return;
        }
        let (inks, width) = (state.inks, state.line_width);
        let known = self.textless.get_mut(&key).and_then(|textless| textless.paints.take());
        let paints = known.filter(|(known, of_width, _)| (*known, *of_width) == (inks, width));
        let paints = paints.unwrap_or_else(|| {
            let outer = std::mem::take(&mut self.paths);
            self.content(&form.content, resources, &State { page: Matrix::IDENTITY, ..state.clone() });
            (inks, width, std::mem::replace(&mut self.paths, outer).painted_areas)
        });
        self.paths.painted_areas.lay(&paints.2, state.page);
        self.textless.insert(key, Textless { paints: Some(paints) });
    }
}
