#![doc = include_str!("../README.md")]

mod backdrop;
mod blocks;
mod body;
mod body_item;
mod color;
mod container;
mod docx_xml;
mod element;
mod error;
mod formula;
mod notes;
mod numbering;
mod office;
mod package;
mod shape;
mod styles;
mod symbol_font;
mod utf8;
mod xml;

pub use docx_xml::DocxXml;
pub use office::OfficeOxide;
