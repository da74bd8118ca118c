#![doc = include_str!("../README.md")]

mod columns;
mod damage;
mod error;
mod fallback;
mod hidden;
mod layout;
mod legibility;
mod lopdf;
mod options;
mod outline;
mod oxide;
mod pacing;
mod page;
mod pages;
mod pdfium;
mod prepared;
mod read;
mod render;
mod runs;

pub use lopdf::Lopdf;
pub use options::PdfOptions;
pub use oxide::PdfOxide;
pub use pages::{Passage, PdfPages, PlacedLetter, PlacedText};
pub use pdfium::Pdfium;
