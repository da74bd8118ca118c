//! Outages of a remote store.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod kills;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod random;
#[cfg(test)]
mod suite;
#[cfg(test)]
mod support;
#[cfg(test)]
mod unknown_outcomes;
