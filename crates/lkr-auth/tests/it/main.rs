//! Accounts and what belongs to them, over a store in memory.

#[cfg(test)]
mod accounts;
#[cfg(test)]
mod admins;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod overtaken;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;
#[cfg(test)]
mod throttle;
