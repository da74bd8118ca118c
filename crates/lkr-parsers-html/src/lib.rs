#![doc = include_str!("../README.md")]

mod article;
mod blocks;
mod charset;
mod css;
mod element;
mod error;
mod guard;
mod hidden;
mod page;
mod plain;
mod readable;
mod sheet;
mod table;
mod unit;

pub use article::Article;
pub use plain::PlainHtml;
