//! What people see: tables, colours, questions, progress; and what programs read instead.

mod output;
mod progress;
mod prompt;
mod table;
mod text;

pub(crate) use output::{Output, OutputArgs, Style};
pub(crate) use progress::{Bar, bytes_bar, spinner};
pub(crate) use prompt::{confirm, read_new_password, read_password};
pub(crate) use table::{Column, Table};
pub(crate) use text::{clean, date, day, field, moment, plural, size, wrap};
