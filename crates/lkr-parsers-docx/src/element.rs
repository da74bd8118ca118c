//! Which elements have a meaning here.

use quick_xml::name::ResolveResult;

/// The elements that have a meaning here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
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
    /// The size of letters.
    Size,
    Shading,
    Highlight,
    /// What lies behind all pages.
    Background,
    /// A shape, which may hold a text box.
    Shape,
    /// A shape as older programs write it, with how it is filled.
    OldShape,
    /// What stands in a text box.
    TextBox,
    /// How an old shape is filled.
    OldFill,
    ShapeProperties,
    /// The lines around a shape.
    Outline,
    NoFill,
    /// A shape is filled with one colour.
    PlainFill,
    /// A shape is filled with a picture, with several colours, or as its group is.
    RichFill,
    /// A shape is filled as its style says.
    StyleFill,
    FillColor,
    Darker,
    /// How much a colour covers.
    Alpha,
    Picture,
    Text,
    MathText,
    Subscript,
    Superscript,
    Denominator,
    Tab,
    Break,
    Hyphen,
    Symbol,
    /// What is not shown: moves away, instructions of fields, comments' anchors.
    Skipped,
    /// What is deleted while changes are tracked: words, or the row whose properties say so.
    Deletion,
    /// A cell is deleted while changes are tracked.
    CellDeletion,
    /// Where a field begins, where its result does, or where it ends.
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
    Num,
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
    /// The colour of the paper in a theme.
    Paper,
    /// Which of a theme's colours stand for which.
    ColorMapping,
    Other,
}

/// What an element of that name space and name is.
pub(crate) fn kind(space: &ResolveResult<'_>, name: &str) -> Kind {
    let ResolveResult::Bound(space) = space else {
        return Kind::Other;
    };
    let space = space.as_ref();
    // Transitional and strict documents have spaces of their own that end alike.
    if space.ends_with("/wordprocessingml/2006/main") || space.ends_with("/wordprocessingml/main") {
        return word(name);
    }
    if space.ends_with("/officeDocument/2006/math") || space.ends_with("/officeDocument/math") {
        return math(name);
    }
    if space.ends_with("/markup-compatibility/2006") {
        return compatibility(name);
    }
    let drawn = drawing(space, name);
    if drawn != Kind::Other {
        return drawn;
    }
    let is_relation = name == "Relationship" && space.ends_with("/package/2006/relationships");
    if is_relation { Kind::Relationship } else { Kind::Other }
}

fn drawing(space: &str, name: &str) -> Kind {
    match (space.rsplit('/').next(), name) {
        (Some("wordprocessingShape"), "wsp") => Kind::Shape,
        (Some("wordprocessingShape"), "spPr") => Kind::ShapeProperties,
        (Some("picture"), "pic") => Kind::Picture,
        (Some("urn:schemas-microsoft-com:vml"), name) => old_drawing(name),
        (Some("main"), name) if space.contains("/drawingml/") => filling(name),
        _ => Kind::Other,
    }
}

fn old_drawing(name: &str) -> Kind {
    match name {
        "shape" | "rect" | "roundrect" | "oval" | "polyline" | "arc" | "line" | "curve" => Kind::OldShape,
        "fill" => Kind::OldFill,
        "imagedata" => Kind::Picture,
        _ => Kind::Other,
    }
}

fn filling(name: &str) -> Kind {
    match name {
        "lt1" => Kind::Paper,
        "ln" => Kind::Outline,
        "noFill" => Kind::NoFill,
        "solidFill" => Kind::PlainFill,
        "gradFill" | "blipFill" | "pattFill" | "grpFill" => Kind::RichFill,
        "fillRef" => Kind::StyleFill,
        "srgbClr" | "schemeClr" | "prstClr" | "sysClr" | "scrgbClr" | "hslClr" => Kind::FillColor,
        "lumMod" | "shade" => Kind::Darker,
        "alpha" => Kind::Alpha,
        _ => Kind::Other,
    }
}

fn compatibility(name: &str) -> Kind {
    match name {
        "AlternateContent" => Kind::Alternate,
        "Choice" => Kind::Choice,
        "Fallback" => Kind::Fallback,
        _ => Kind::Other,
    }
}

fn math(name: &str) -> Kind {
    match name {
        "r" => Kind::Run,
        "t" => Kind::MathText,
        "sub" => Kind::Subscript,
        "sup" => Kind::Superscript,
        "den" => Kind::Denominator,
        _ => Kind::Other,
    }
}

fn word(name: &str) -> Kind {
    match name {
        "document" => Kind::Document,
        "p" => Kind::Paragraph,
        "pPr" => Kind::ParagraphProperties,
        "pStyle" => Kind::ParagraphStyle,
        "outlineLvl" => Kind::OutlineLevel,
        "tbl" => Kind::Table,
        "tblStyle" => Kind::TableStyle,
        "tr" => Kind::Row,
        "trPr" => Kind::RowProperties,
        "del" => Kind::Deletion,
        "cellDel" => Kind::CellDeletion,
        "fldChar" => Kind::FieldMark,
        "clrSchemeMapping" => Kind::ColorMapping,
        "tc" => Kind::Cell,
        "moveFrom" | "delText" | "instrText" | "delInstrText" | "pPrChange" | "rPrChange" | "tblPrChange"
        | "trPrChange" | "tcPrChange" | "numberingChange" => Kind::Skipped,
        "altChunk" => Kind::Embedded,
        "background" => Kind::Background,
        "txbxContent" => Kind::TextBox,
        _ => run(name),
    }
}

fn run(name: &str) -> Kind {
    match name {
        "r" => Kind::Run,
        "rPr" => Kind::RunProperties,
        "rStyle" => Kind::RunStyle,
        "vanish" => Kind::Vanish,
        "color" => Kind::Color,
        "sz" => Kind::Size,
        "shd" => Kind::Shading,
        "highlight" => Kind::Highlight,
        "t" => Kind::Text,
        "tab" | "ptab" => Kind::Tab,
        "br" | "cr" => Kind::Break,
        "noBreakHyphen" => Kind::Hyphen,
        "sym" => Kind::Symbol,
        "footnoteReference" => Kind::FootnoteReference,
        "endnoteReference" => Kind::EndnoteReference,
        "footnote" => Kind::Footnote,
        "endnote" => Kind::Endnote,
        _ => definition(name),
    }
}

fn definition(name: &str) -> Kind {
    match name {
        "style" => Kind::Style,
        "name" => Kind::StyleName,
        "basedOn" => Kind::BasedOn,
        "numPr" => Kind::Numbering,
        "ilvl" => Kind::NumberingLevel,
        "numId" => Kind::NumberingId,
        "abstractNum" => Kind::AbstractNum,
        "abstractNumId" => Kind::AbstractNumId,
        "num" => Kind::Num,
        "lvl" => Kind::Level,
        "lvlOverride" => Kind::LevelOverride,
        "start" => Kind::Start,
        "startOverride" => Kind::StartOverride,
        "numFmt" => Kind::Format,
        "lvlText" => Kind::LevelText,
        _ => Kind::Other,
    }
}
