//! The relevant elements of Word documents.

use quick_xml::name::ResolveResult;

/// The kind of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ElementKind {
    Document,
    Paragraph,
    ParagraphProperties,
    ParagraphStyle,
    Numbering,
    NumberingLevel,
    NumberingId,
    OutlineLevel,
    Run,
    RunProperties,
    RunStyle,
    Vanish,
    Color,
    /// The font size.
    Size,
    /// The names of the fonts.
    Fonts,
    Shading,
    Highlight,
    /// The background of all pages.
    Background,
    /// A shape, which may contain a text box.
    Shape,
    /// A shape in VML, the older format for drawings, with its fill.
    VmlShape,
    /// The content of a text box.
    TextBox,
    /// The fill of a VML shape.
    VmlFill,
    ShapeProperties,
    /// The lines around a shape.
    Outline,
    NoFill,
    /// A fill with one colour.
    SolidFill,
    /// A fill with an image or several colours, or that of the group.
    MultiColorFill,
    /// The fill of the style of a shape.
    StyleFill,
    FillColor,
    Darker,
    /// The opacity of a colour.
    Alpha,
    Picture,
    Text,
    MathText,
    Subscript,
    Superscript,
    Numerator,
    Denominator,
    /// A part of a formula in brackets, and its signs.
    Delimiters,
    DelimiterBegin,
    DelimiterSeparator,
    DelimiterEnd,
    /// An operator with limits, such as a sum, and its sign.
    Operator,
    OperatorSign,
    Root,
    /// A matrix, or an array of equations.
    Rows,
    MatrixRow,
    /// What a part of a formula contains.
    Argument,
    /// Text with its pronunciation, which comes first.
    Ruby,
    Pronunciation,
    Tab,
    Break,
    Hyphen,
    Symbol,
    /// Content that is not shown: text that was moved away, instructions of fields, previous properties.
    Skipped,
    /// A tracked deletion of text, or of a row if it is in the row properties.
    Deletion,
    /// A tracked deletion of a cell.
    CellDeletion,
    /// The start of a field, the start of its result, or its end.
    FieldMark,
    Alternate,
    Choice,
    Fallback,
    Table,
    TableStyle,
    Row,
    RowProperties,
    Cell,
    Style,
    StyleName,
    BasedOn,
    AbstractNum,
    AbstractNumId,
    /// The list style that a definition belongs to.
    StyleLink,
    /// The list style whose definition is used instead of this one.
    NumberingStyleLink,
    ListInstance,
    Level,
    LevelOverride,
    Start,
    StartOverride,
    Format,
    LevelText,
    Footnote,
    Endnote,
    FootnoteReference,
    EndnoteReference,
    Embedded,
    Relationship,
    /// The page colour of a theme.
    PageColor,
    /// The mapping of theme colours.
    ColorMapping,
    Other,
}

/// The kind of an element by its name space and local name.
pub(crate) fn element_kind(space: &ResolveResult<'_>, name: &str) -> ElementKind {
    let ResolveResult::Bound(space) = space else {
        return ElementKind::Other;
    };
    let space = space.as_ref();
    // Transitional and strict documents have different name spaces with the same ends.
    if space.ends_with("/wordprocessingml/2006/main") || space.ends_with("/wordprocessingml/main") {
        return word(name);
    }
    if space.ends_with("/officeDocument/2006/math") || space.ends_with("/officeDocument/math") {
        return math(name);
    }
    if space.ends_with("/markup-compatibility/2006") {
        return compatibility(name);
    }
    let drawing_kind = drawing(space, name);
    if drawing_kind != ElementKind::Other {
        return drawing_kind;
    }
    let is_relation = name == "Relationship" && space.ends_with("/package/2006/relationships");
    if is_relation { ElementKind::Relationship } else { ElementKind::Other }
}

fn drawing(space: &str, name: &str) -> ElementKind {
    match (space.rsplit('/').next(), name) {
        (Some("wordprocessingShape"), "wsp") => ElementKind::Shape,
        (Some("wordprocessingShape"), "spPr") => ElementKind::ShapeProperties,
        (Some("picture"), "pic") => ElementKind::Picture,
        (Some("urn:schemas-microsoft-com:vml"), name) => vml_drawing(name),
        (Some("main"), name) if space.contains("/drawingml/") => filling(name),
        _ => ElementKind::Other,
    }
}

fn vml_drawing(name: &str) -> ElementKind {
    match name {
        "shape" | "rect" | "roundrect" | "oval" | "polyline" | "arc" | "line" | "curve" => {
            ElementKind::VmlShape
        }
        "fill" => ElementKind::VmlFill,
        "imagedata" => ElementKind::Picture,
        _ => ElementKind::Other,
    }
}

fn filling(name: &str) -> ElementKind {
    match name {
        "lt1" => ElementKind::PageColor,
        "ln" => ElementKind::Outline,
        "noFill" => ElementKind::NoFill,
        "solidFill" => ElementKind::SolidFill,
        "gradFill" | "blipFill" | "pattFill" | "grpFill" => ElementKind::MultiColorFill,
        "fillRef" => ElementKind::StyleFill,
        "srgbClr" | "schemeClr" | "prstClr" | "sysClr" | "scrgbClr" | "hslClr" => ElementKind::FillColor,
        "lumMod" | "shade" => ElementKind::Darker,
        "alpha" => ElementKind::Alpha,
        _ => ElementKind::Other,
    }
}

fn compatibility(name: &str) -> ElementKind {
    match name {
        "AlternateContent" => ElementKind::Alternate,
        "Choice" => ElementKind::Choice,
        "Fallback" => ElementKind::Fallback,
        _ => ElementKind::Other,
    }
}

fn math(name: &str) -> ElementKind {
    match name {
        "r" => ElementKind::Run,
        "t" => ElementKind::MathText,
        "sub" => ElementKind::Subscript,
        "sup" => ElementKind::Superscript,
        "num" => ElementKind::Numerator,
        "den" => ElementKind::Denominator,
        "d" => ElementKind::Delimiters,
        "begChr" => ElementKind::DelimiterBegin,
        "sepChr" => ElementKind::DelimiterSeparator,
        "endChr" => ElementKind::DelimiterEnd,
        "nary" => ElementKind::Operator,
        "chr" => ElementKind::OperatorSign,
        "rad" => ElementKind::Root,
        "m" | "eqArr" => ElementKind::Rows,
        "mr" => ElementKind::MatrixRow,
        "e" => ElementKind::Argument,
        _ => ElementKind::Other,
    }
}

fn word(name: &str) -> ElementKind {
    match name {
        "document" => ElementKind::Document,
        "p" => ElementKind::Paragraph,
        "pPr" => ElementKind::ParagraphProperties,
        "pStyle" => ElementKind::ParagraphStyle,
        "outlineLvl" => ElementKind::OutlineLevel,
        "tbl" => ElementKind::Table,
        "tblStyle" => ElementKind::TableStyle,
        "tr" => ElementKind::Row,
        "trPr" => ElementKind::RowProperties,
        "del" => ElementKind::Deletion,
        "cellDel" => ElementKind::CellDeletion,
        "fldChar" => ElementKind::FieldMark,
        "clrSchemeMapping" => ElementKind::ColorMapping,
        "tc" => ElementKind::Cell,
        "moveFrom" | "delText" | "instrText" | "delInstrText" | "pPrChange" | "rPrChange" | "tblPrChange"
        | "trPrChange" | "tcPrChange" | "numberingChange" => ElementKind::Skipped,
        "altChunk" => ElementKind::Embedded,
        "background" => ElementKind::Background,
        "txbxContent" => ElementKind::TextBox,
        _ => run(name),
    }
}

fn run(name: &str) -> ElementKind {
    match name {
        "r" => ElementKind::Run,
        "rPr" => ElementKind::RunProperties,
        "rStyle" => ElementKind::RunStyle,
        "vanish" => ElementKind::Vanish,
        "color" => ElementKind::Color,
        "sz" => ElementKind::Size,
        "rFonts" => ElementKind::Fonts,
        "shd" => ElementKind::Shading,
        "highlight" => ElementKind::Highlight,
        "t" => ElementKind::Text,
        "tab" | "ptab" => ElementKind::Tab,
        "br" | "cr" => ElementKind::Break,
        "noBreakHyphen" => ElementKind::Hyphen,
        "sym" => ElementKind::Symbol,
        "ruby" => ElementKind::Ruby,
        "rt" => ElementKind::Pronunciation,
        "footnoteReference" => ElementKind::FootnoteReference,
        "endnoteReference" => ElementKind::EndnoteReference,
        "footnote" => ElementKind::Footnote,
        "endnote" => ElementKind::Endnote,
        _ => definition(name),
    }
}

fn definition(name: &str) -> ElementKind {
    match name {
        "style" => ElementKind::Style,
        "name" => ElementKind::StyleName,
        "basedOn" => ElementKind::BasedOn,
        "numPr" => ElementKind::Numbering,
        "ilvl" => ElementKind::NumberingLevel,
        "numId" => ElementKind::NumberingId,
        "abstractNum" => ElementKind::AbstractNum,
        "abstractNumId" => ElementKind::AbstractNumId,
        "styleLink" => ElementKind::StyleLink,
        "numStyleLink" => ElementKind::NumberingStyleLink,
        "num" => ElementKind::ListInstance,
        "lvl" => ElementKind::Level,
        "lvlOverride" => ElementKind::LevelOverride,
        "start" => ElementKind::Start,
        "startOverride" => ElementKind::StartOverride,
        "numFmt" => ElementKind::Format,
        "lvlText" => ElementKind::LevelText,
        _ => ElementKind::Other,
    }
}
