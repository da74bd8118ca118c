use std::{borrow::Cow, collections::HashMap, rc::Rc};

use lopdf::{
    Dictionary, Document, Object,
    content::{Content, Operation},
};

use super::{MAX_STREAM, fonts::Font, matrix::Matrix};
use crate::{page::Rect, runs::Run};

/// Forms inside forms beyond this are left out.
const MAX_DEPTH: usize = 8;

/// Operations of one page beyond this many are left out.
const MAX_OPERATIONS: usize = 5_000_000;

/// The text that the content of a page shows, in its order.
pub(super) fn runs<'a>(
    document: &'a Document,
    resources: Option<&'a Dictionary>,
    content: &[u8],
) -> Vec<Run<'static>> {
    let mut reader = Reader { document, fonts: HashMap::new(), runs: vec![], operations: 0 };
    reader.content(content, resources, &State::new(), 0);
    reader.runs
}

struct Reader<'a> {
    document: &'a Document,
    fonts: HashMap<*const Dictionary, Rc<Font<'a>>>,
    runs: Vec<Run<'static>>,
    operations: usize,
}

/// What operators set and `q` keeps.
#[derive(Clone)]
struct State<'a> {
    page: Matrix,
    text: Matrix,
    line: Matrix,
    font: Option<Rc<Font<'a>>>,
    size: f32,
    between: f32,
    blank: f32,
    stretch: f32,
    leading: f32,
    rise: f32,
    undrawn: bool,
}

impl State<'_> {
    const fn new() -> Self {
        Self {
            page: Matrix::IDENTITY,
            text: Matrix::IDENTITY,
            line: Matrix::IDENTITY,
            font: None,
            size: 0.0,
            between: 0.0,
            blank: 0.0,
            stretch: 1.0,
            leading: 0.0,
            rise: 0.0,
            undrawn: false,
        }
    }

    fn next_line(&mut self, x: f32, y: f32) {
        self.line = Matrix::shift(x, y).then(self.line);
        self.text = self.line;
    }
}

impl<'a> Reader<'a> {
    fn content(
        &mut self,
        content: &[u8],
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
        depth: usize,
    ) {
        let mut state = state.clone();
        let mut kept = Vec::new();
        for operation in Content::decode_iter(content) {
            let Ok(operation) = operation else { return };
            self.operations += 1;
            if self.operations > MAX_OPERATIONS {
                return;
            }
            match operation.operator.as_str() {
                "q" if kept.len() < 1000 => kept.push(state.clone()),
                "Q" => state = kept.pop().unwrap_or(state),
                "Do" if depth < MAX_DEPTH => drop(self.form(&operation, resources, &state, depth)),
                "Tf" => drop(self.font(&operation, resources, &mut state)),
                "Tj" | "TJ" | "'" | "\"" => self.show(&operation, &mut state),
                _ => place(&operation, &mut state),
            }
        }
    }

    fn form(
        &mut self,
        operation: &Operation,
        resources: Option<&'a Dictionary>,
        state: &State<'a>,
        depth: usize,
    ) -> Option<()> {
        let form = self.resource(resources, b"XObject", operation)?.as_stream().ok()?;
        if form.dict.get_deref(b"Subtype", self.document).ok()?.as_name().ok()? != b"Form" {
            return None;
        }
        let content = form.get_plain_content_with_limit(MAX_STREAM).ok()?;
        let own = form.dict.get_deref(b"Resources", self.document).and_then(Object::as_dict).ok();
        let mut state = state.clone();
        let matrix = form.dict.get_deref(b"Matrix", self.document).and_then(Object::as_array);
        if let Some(matrix) = matrix.ok().and_then(|matrix| numbers(matrix)) {
            state.page = Matrix::new(matrix).then(state.page);
        }
        self.content(&content, own.or(resources), &state, depth + 1);
        Some(())
    }

    fn font(
        &mut self,
        operation: &Operation,
        resources: Option<&'a Dictionary>,
        state: &mut State<'a>,
    ) -> Option<()> {
        state.size = operation.operands.get(1)?.as_float().ok()?;
        let font = self.resource(resources, b"Font", operation).and_then(|font| font.as_dict().ok());
        state.font = font.map(|font| {
            let new = || Rc::new(Font::new(self.document, font));
            Rc::clone(self.fonts.entry(std::ptr::from_ref(font)).or_insert_with(new))
        });
        Some(())
    }

    /// The resource of this kind that the first operand names.
    fn resource(
        &self,
        resources: Option<&'a Dictionary>,
        kind: &[u8],
        operation: &Operation,
    ) -> Option<&'a Object> {
        let name = operation.operands.first()?.as_name().ok()?;
        let all = resources?.get_deref(kind, self.document).ok()?.as_dict().ok()?;
        all.get_deref(name, self.document).ok()
    }

    fn show(&mut self, operation: &Operation, state: &mut State<'a>) {
        if matches!(operation.operator.as_str(), "'" | "\"") {
            state.next_line(0.0, -state.leading);
        }
        let Some(shown) = operation.operands.last() else { return };
        for part in shown.as_array().map_or(std::slice::from_ref(shown), Vec::as_slice) {
            match part {
                Object::String(bytes, _) => self.string(bytes, state),
                part => {
                    let back = part.as_float().unwrap_or(0.0) / 1000.0 * state.size * state.stretch;
                    state.text = Matrix::shift(-back, 0.0).then(state.text);
                }
            }
        }
    }

    fn string(&mut self, bytes: &[u8], state: &mut State<'a>) {
        let Some(font) = &state.font else { return };
        let advance = |(width, blank): (f32, bool)| {
            width / 1000.0 * state.size + state.between + if blank { state.blank } else { 0.0 }
        };
        let width = font.codes(bytes).map(advance).sum::<f32>() * state.stretch;
        let whole = Matrix::shift(0.0, state.rise).then(state.text).then(state.page);
        let (from, to) = (whole.apply(0.0, 0.0), whole.apply(width, 0.0));
        let size = (state.size * whole.rise()).abs();
        let upright = whole.is_upright();
        let place = Rect {
            left: from.0.min(to.0),
            bottom: from.1.min(to.1),
            right: from.0.max(to.0),
            top: from.1.max(to.1) + if upright { size } else { 0.0 },
        };
        let text = font.text(bytes);
        if size >= 1.0 && place.is_finite() && !text.is_empty() {
            let bold = font.bold;
            let text = Cow::Owned(text);
            self.runs.push(Run { text, place, size, bold, pale: false, undrawn: state.undrawn, upright });
        }
        state.text = Matrix::shift(width, 0.0).then(state.text);
    }
}

/// Operators that move the text or say how it is set.
fn place(operation: &Operation, state: &mut State<'_>) {
    let one = numbers(&operation.operands).map(|[number]| number);
    let two = numbers::<2>(&operation.operands);
    match (operation.operator.as_str(), one, two) {
        ("cm", ..) => {
            if let Some(matrix) = numbers(&operation.operands) {
                state.page = Matrix::new(matrix).then(state.page);
            }
        }
        ("BT", ..) => (state.text, state.line) = (Matrix::IDENTITY, Matrix::IDENTITY),
        ("Tm", ..) => {
            if let Some(matrix) = numbers(&operation.operands) {
                (state.text, state.line) = (Matrix::new(matrix), Matrix::new(matrix));
            }
        }
        ("Td", _, Some([x, y])) => state.next_line(x, y),
        ("TD", _, Some([x, y])) => {
            state.leading = -y;
            state.next_line(x, y);
        }
        ("T*", ..) => state.next_line(0.0, -state.leading),
        ("Tc", Some(number), _) => state.between = number,
        ("Tw", Some(number), _) => state.blank = number,
        ("Tz", Some(number), _) => state.stretch = number / 100.0,
        ("TL", Some(number), _) => state.leading = number,
        ("Ts", Some(number), _) => state.rise = number,
        ("Tr", Some(number), _) => state.undrawn = number == 3.0 || number == 7.0,
        _ => {}
    }
}

/// The first `N` operands as numbers.
fn numbers<const N: usize>(operands: &[Object]) -> Option<[f32; N]> {
    let mut numbers = [0.0; N];
    for (number, operand) in numbers.iter_mut().zip(operands.get(..N)?) {
        *number = operand.as_float().ok()?;
    }
    Some(numbers)
}
