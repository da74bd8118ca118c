#![doc = include_str!("../README.md")]

mod article;
mod blocks;
mod charset;
mod css;
mod element;
mod error;
mod page;
mod picture;
mod plain;
mod readability;
mod sanitize;
mod style_sheet;
mod table;
mod unit;
mod visibility;

pub use article::Article;
pub use plain::PlainHtml;
