//! Accounts, sessions, keys and the audit log on a store in memory.

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
mod operator;
#[cfg(test)]
mod outages;
#[cfg(test)]
mod races;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod support;
#[cfg(test)]
mod throttle;
