#![doc = include_str!("../README.md")]

mod caller;
mod directory;
mod error;
mod group;
mod group_changes;
mod load;
mod member;
mod member_changes;
mod offline_merge;
mod records;
mod rights;
mod space;
mod space_changes;
mod spaces;

pub use caller::{Caller, WriteAccess};
pub use directory::Directory;
pub use error::{Error, ErrorKind, Result};
pub use group::{Group, GroupMember, GroupName, NewGroup};
pub use lkr_domain::{GroupId, KeyScope, Scope, SpaceName};
pub use member::{Member, MemberId};
pub use offline_merge::SpacesMergePolicy;
pub use records::is_readable;
pub use space::{NewSpace, ReadPolicy, Space, SpaceChange, SpaceRole, WritePolicy};
pub use spaces::Spaces;
