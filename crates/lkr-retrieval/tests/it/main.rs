//! Searches over in-memory stores, through the public API.

#[cfg(test)]
mod base;
#[cfg(test)]
mod changes;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod fusion;
#[cfg(test)]
mod headings;
#[cfg(test)]
mod literal;
#[cfg(test)]
mod rerank;
#[cfg(test)]
mod results;
#[cfg(test)]
mod rounds;
#[cfg(test)]
mod summaries;
