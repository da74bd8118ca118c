#![doc = include_str!("../README.md")]

mod background;
mod pool;
mod priority;
mod processors;

pub use background::BackgroundRuntime;
pub use pool::ThreadPool;
pub use priority::give_way;
