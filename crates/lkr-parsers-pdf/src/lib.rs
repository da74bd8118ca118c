#![doc = include_str!("../README.md")]

mod clean;
mod columns;
mod error;
mod fallback;
mod hidden;
mod layout;
mod lopdf;
mod options;
mod outline;
mod oxide;
mod pace;
mod page;
mod pdfium;
mod read;
mod render;
mod runs;

pub use lopdf::Lopdf;
pub use options::PdfOptions;
pub use oxide::PdfOxide;
pub use pdfium::Pdfium;
