#![doc = include_str!("../README.md")]

mod article;
mod blocks;
mod charset;
mod element;
mod error;
mod guard;
mod hidden;
mod page;
mod plain;
mod readable;
mod table;
mod unit;

pub use article::Article;
pub use plain::PlainHtml;
