//! Forms: content that pages and other forms draw, as often as they like.

use std::rc::Rc;

use lopdf::{Dictionary, Object, ObjectId, Stream};

use super::{
    content::{Reader, Walker},
    ground::Ground,
    ink::Inks,
    matrix::Matrix,
    shown::{At, Sight},
    state::{State, numbers},
    streams,
    tokens::Operation,
};

/// Forms inside forms beyond this are left out.
const MAX_DEPTH: usize = 32;

/// So many bytes of forms are kept unpacked.
const MAX_KEPT: usize = 64 * 1024 * 1024;

/// A form as it is walked through.
pub(super) struct Form<'a> {
    content: Vec<u8>,
    resources: Option<&'a Dictionary>,
    matrix: Matrix,
    /// Whether nothing of it is seen, as the box that it is cut to is empty.
    is_cut_away: bool,
}

/// What a form without text paints, by what it finds set.
pub(super) struct Textless {
    /// What it paints, and with which colours and width of lines; nothing before it is known.
    paints: Option<(Inks, f32, Ground)>,
}

impl<'a> Walker<'a> {
    /// The form of this number; nothing where it cannot be unpacked.
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
        if self.kept > MAX_KEPT {
            self.forms.clear();
            self.kept = form.content.len();
        }
        self.forms.insert(id, Rc::clone(&form));
        Some(form)
    }
}

impl<'a> Reader<'_, 'a> {
    /// A form or a picture.
    pub(super) fn object(
        &mut self,
        operation: &Operation<'_>,
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
        at: At,
    ) -> Option<()> {
        let document = self.walker.document;
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
        self.walked.draws.insert((at.form, id));
        let (before, ground) = (self.walked.texts.len(), self.paths.ground.size());
        self.form(id, object, resources, &State { is_off, ..state.clone() });
        let texts = self.walked.texts.get(before..).unwrap_or_default();
        let is_clear = is_off || state.inks.fill_is_clear();
        // What it paints may be seen although its text is not.
        let is_unseen = at.form.is_none() && is_clear && ground == self.paths.ground.size();
        if is_unseen && !texts.is_empty() && texts.iter().all(|text| text.sight == Sight::Hidden) {
            self.walked.unseen.push((at, before..self.walked.texts.len()));
        }
        Some(())
    }

    fn form(
        &mut self,
        id: ObjectId,
        form: &'a Stream,
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
    ) -> Option<()> {
        if self.open.contains(&id) {
            self.left_out += 1;
            return None;
        }
        let Some(form) = self.walker.form(id, form).filter(|_| self.open.len() < MAX_DEPTH) else {
            self.walked.is_partial = true;
            return None;
        };
        let resources = form.resources.or(resources);
        let key = (id, resources.map_or(std::ptr::null(), std::ptr::from_ref));
        let page = form.matrix.then(state.page);
        let state = State { page, is_cut_away: state.is_cut_away || form.is_cut_away, ..state.clone() };
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

    /// Paints what a form without text paints, as plans do with their symbols thousands of times.
    fn repeat(
        &mut self,
        form: &Form<'a>,
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
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
            (inks, width, std::mem::replace(&mut self.paths, outer).ground)
        });
        self.paths.ground.lay(&paints.2, state.page);
        self.textless.insert(key, Textless { paints: Some(paints) });
    }
}
