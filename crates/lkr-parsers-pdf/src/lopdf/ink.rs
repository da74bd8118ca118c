//! The colours, alpha and rendering mode of text.

use lopdf::{Dictionary, Document, Object};

use super::{state::numbers, tokens::Operation};

/// Colours with all components above this are nearly invisible on white. See docs/studies.md#hidden-text.
pub(crate) const PALE: f32 = 0.93;

/// Alpha up to this is nearly invisible. See docs/studies.md#hidden-text.
const CLEAR: f32 = 0.071;

/// Letters of at least this many points can be the background of others, as in signs and initials. See
/// docs/studies.md#hidden-text.
pub(super) const LETTERS_ARE_GROUND: f32 = 24.0;

/// A colour space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Grey,
    Rgb,
    Cmyk,
    /// Tints of inks; all 0 is no ink.
    Tints,
    /// An unsupported colour space; its colours count as dark.
    Other,
}

impl Space {
    const fn of_parts(parts: i64) -> Self {
        match parts {
            1 => Self::Grey,
            3 => Self::Rgb,
            4 => Self::Cmyk,
            _ => Self::Other,
        }
    }

    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"DeviceGray" | b"CalGray" | b"G" => Some(Self::Grey),
            b"DeviceRGB" | b"CalRGB" | b"RGB" => Some(Self::Rgb),
            b"DeviceCMYK" | b"CMYK" => Some(Self::Cmyk),
            _ => None,
        }
    }

    /// The colour space that the first operand names, directly or through the resources.
    fn find(document: &Document, resources: Option<&Dictionary>, operation: &Operation<'_>) -> Option<Self> {
        let name = operation.operands.first()?.as_name().ok()?;
        if let Some(space) = Self::named(name) {
            return Some(space);
        }
        let spaces = resources?.get_deref(b"ColorSpace", document).ok()?.as_dict().ok()?;
        match spaces.get_deref(name, document).ok()? {
            Object::Name(name) => Self::named(name),
            Object::Array(space) => {
                let name = space.first()?.as_name().ok()?;
                match name {
                    b"Separation" | b"DeviceN" => return Some(Self::Tints),
                    b"ICCBased" => {}
                    name => return Self::named(name),
                }
                let profile = document.dereference(space.get(1)?).ok()?.1.as_stream().ok()?;
                Some(Self::of_parts(profile.dict.get_deref(b"N", document).ok()?.as_i64().ok()?))
            }
            _ => None,
        }
    }
}

/// The current colour.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ink {
    space: Space,
    is_pale: bool,
}

impl Ink {
    const BLACK: Self = Self { space: Space::Grey, is_pale: false };

    fn set(&mut self, space: Space, operands: &[Object]) {
        *self = Self { space, is_pale: is_pale(space, operands) };
    }
}

fn is_pale(space: Space, operands: &[Object]) -> bool {
    let light = |parts: &[f32]| parts.iter().all(|part| *part > PALE);
    match space {
        Space::Grey => numbers::<1>(operands).is_some_and(|parts| light(&parts)),
        Space::Rgb => numbers::<3>(operands).is_some_and(|parts| light(&parts)),
        Space::Cmyk => numbers::<4>(operands).is_some_and(|parts| light(&parts.map(|part| 1.0 - part))),
        Space::Tints => {
            !operands.is_empty()
                && operands.iter().all(|tint| tint.as_float().is_ok_and(|tint| tint < 1.0 - PALE))
        }
        Space::Other => false,
    }
}

/// The current colours and alpha for filling and stroking.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Inks {
    fill: Ink,
    stroke: Ink,
    fill_alpha: f32,
    stroke_alpha: f32,
    /// The text rendering mode.
    mode: u8,
    /// Whether what is painted is blended with what is below it.
    blends: bool,
    /// Whether the form that is being drawn is blended with what is below it.
    form_blends: bool,
}

impl Inks {
    pub(super) const fn new() -> Self {
        Self {
            fill: Ink::BLACK,
            stroke: Ink::BLACK,
            fill_alpha: 1.0,
            stroke_alpha: 1.0,
            mode: 0,
            blends: false,
            form_blends: false,
        }
    }

    /// Applies an operator that sets a colour; returns whether it was one.
    pub(super) fn color(
        &mut self,
        document: &Document,
        resources: Option<&Dictionary>,
        operation: &Operation<'_>,
    ) -> bool {
        let operator = operation.operator;
        let ink = match operator {
            "g" | "rg" | "k" | "cs" | "sc" | "scn" => &mut self.fill,
            "G" | "RG" | "K" | "CS" | "SC" | "SCN" => &mut self.stroke,
            _ => return false,
        };
        match operator {
            "g" | "G" => ink.set(Space::Grey, operation.operands),
            "rg" | "RG" => ink.set(Space::Rgb, operation.operands),
            "k" | "K" => ink.set(Space::Cmyk, operation.operands),
            "cs" | "CS" => {
                let space = Space::find(document, resources, operation).unwrap_or(Space::Other);
                *ink = Ink { space, is_pale: false };
            }
            _ => ink.set(ink.space, operation.operands),
        }
        true
    }

    /// Applies the alpha and the blend mode of a graphics state.
    pub(super) fn cover(&mut self, document: &Document, state: &Dictionary) {
        let alpha = |key: &[u8]| state.get_deref(key, document).and_then(Object::as_float).ok();
        self.fill_alpha = alpha(b"ca").unwrap_or(self.fill_alpha);
        self.stroke_alpha = alpha(b"CA").unwrap_or(self.stroke_alpha);
        if let Ok(Object::Name(mode)) = state.get_deref(b"BM", document) {
            self.blends = !matches!(mode.as_slice(), b"Normal" | b"Compatible");
        }
    }

    /// Whether what is painted is blended with what is below it, by its own state or by that of the form.
    pub(super) const fn blends(&self) -> bool {
        self.blends || self.form_blends
    }

    /// The inks at the start of a form. Its content may set a blend mode of its own, and is blended as a whole, too.
    pub(super) const fn in_form(self) -> Self {
        Self { form_blends: self.blends(), ..self }
    }

    /// Sets the mode; an invalid mode counts as 0.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "such a number is no mode")]
    pub(super) const fn set_mode(&mut self, mode: Option<f32>) {
        self.mode = match mode {
            Some(mode) if mode >= 0.0 && mode < 8.0 => mode as u8,
            _ => 0,
        };
    }

    /// Whether text is not drawn.
    pub(super) const fn is_undrawn(&self) -> bool {
        matches!(self.mode, 3 | 7)
    }

    /// Whether filled areas are transparent.
    pub(super) fn fill_is_clear(&self) -> bool {
        self.fill_alpha <= CLEAR
    }

    /// Whether text is drawn, but transparent.
    pub(super) fn text_is_clear(&self) -> bool {
        !self.is_undrawn() && !self.text_inks().any(|(_, alpha)| alpha > CLEAR)
    }

    /// Whether text is invisible on white.
    pub(super) fn text_is_pale(&self) -> bool {
        !self.is_undrawn() && self.text_inks().all(|(ink, alpha)| ink.is_pale || alpha <= CLEAR)
    }

    /// Whether a filled area is visible on white.
    pub(super) fn fill_shows(&self) -> bool {
        !self.fill.is_pale && self.fill_alpha > CLEAR
    }

    /// Whether a stroked line is visible on white.
    pub(super) fn stroke_shows(&self) -> bool {
        !self.stroke.is_pale && self.stroke_alpha > CLEAR
    }

    /// The colours of text with their alpha.
    fn text_inks(&self) -> impl Iterator<Item = (Ink, f32)> {
        let fill = matches!(self.mode, 0 | 2 | 4 | 6).then_some((self.fill, self.fill_alpha));
        let stroke = matches!(self.mode, 1 | 2 | 5 | 6).then_some((self.stroke, self.stroke_alpha));
        fill.into_iter().chain(stroke)
    }
}
