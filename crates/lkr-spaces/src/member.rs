use lkr_domain::GroupId;

use crate::SpaceRole;

/// Who is a member of a space. Members are kept by id: a later account or group of the same name is another member.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberId {
    /// The account with this id.
    User(String),
    /// The group with this id.
    Group(GroupId),
}

/// A member of a space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Who it is.
    pub id: MemberId,
    /// The name of the account or group, for display.
    pub name: String,
    /// What it may do.
    pub role: SpaceRole,
}

const USER: &str = "user";
const GROUP: &str = "group";

impl MemberId {
    /// `user` or `group`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::User(_) => USER,
            Self::Group(_) => GROUP,
        }
    }

    /// The last part of the key of a membership: the kind and the id.
    pub(crate) fn key_part(&self) -> String {
        match self {
            Self::User(id) => format!("{USER}:{id}"),
            Self::Group(id) => format!("{GROUP}:{id}"),
        }
    }

    /// The inverse of [`key_part`](Self::key_part).
    pub(crate) fn from_key_part(part: &str) -> Option<Self> {
        let (kind, id) = part.split_once(':')?;
        match kind {
            USER => Some(Self::User(id.to_owned())),
            GROUP => id.parse().ok().map(Self::Group),
            _ => None,
        }
    }
}

impl Member {
    /// The member as people write it: `user:alice` or `group:legal`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{}:{}", self.id.kind(), self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_part_and_from_key_part_are_inverse() {
        for id in [MemberId::User("17".to_owned()), MemberId::Group(GroupId::new())] {
            assert_eq!(MemberId::from_key_part(&id.key_part()), Some(id));
        }
        for part in ["", "user", "group:x", "other:1"] {
            assert_eq!(MemberId::from_key_part(part), None, "{part}");
        }
    }
}
