#![doc = include_str!("../README.md")]

mod blocks;
mod color;
mod docx_xml;
mod error;
mod frame;
mod item;
mod kind;
mod notes;
mod numbering;
mod office;
mod package;
mod scenery;
mod shape;
mod styles;
mod utf8;
mod walk;
mod xml;

pub use docx_xml::DocxXml;
pub use office::OfficeOxide;
