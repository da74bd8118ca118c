use lkr_domain::{SpaceName, TaskId};
use time::OffsetDateTime;

use crate::{Error, Result};

/// The longest title of a space or a group, in characters. Chosen, not measured.
const MAX_TITLE_CHARS: usize = 200;

/// The longest description of a space, in characters. Chosen, not measured.
const MAX_DESCRIPTION_CHARS: usize = 2_000;

macro_rules! named {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant,)*
        }

        impl $name {
            /// All values, in ascending order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in responses and records.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}

named! {
    /// Who may read a space.
    ReadPolicy {
        /// All accounts, and anonymous callers unless the program demands a login.
        Everyone = "everyone",
        /// Members alone.
        Members = "members",
    }
}

named! {
    /// Who may add documents to a space.
    WritePolicy {
        /// Every account is a writer.
        Accounts = "accounts",
        /// Members of role writer or manager.
        Members = "members",
    }
}

named! {
    /// What a member of a space may do. A higher role includes the lower ones.
    SpaceRole {
        /// Reads documents.
        Reader = "reader",
        /// Adds documents, and changes and deletes own ones.
        Writer = "writer",
        /// Changes and deletes all documents of the space, and changes the space and its members.
        Manager = "manager",
    }
}

/// A set of documents with rights of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// Its name, which never changes and is never used again.
    pub name: SpaceName,
    /// Its title.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Who may read it.
    pub read: ReadPolicy,
    /// Who may add documents.
    pub write: WritePolicy,
    /// When it was created; the start of 1970 for the default space before [`Spaces::ensure_default`].
    ///
    /// [`Spaces::ensure_default`]: crate::Spaces::ensure_default
    pub created_at: OffsetDateTime,
    /// When it was last changed. Changes of its members do not count.
    pub updated_at: OffsetDateTime,
    /// The name of the account that created it; empty for the default space.
    pub created_by: String,
    /// The task that deletes it. Nobody may read a space that is being deleted.
    pub deleting: Option<TaskId>,
}

/// A space to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSpace {
    /// Its name.
    pub name: SpaceName,
    /// Its title.
    pub title: String,
    /// What it is for.
    pub description: String,
    /// Who may read it.
    pub read: ReadPolicy,
    /// Who may add documents.
    pub write: WritePolicy,
    /// The name of the account that creates it. The account becomes no member.
    pub created_by: String,
}

/// A change of a space; a field that is `None` keeps its value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpaceChange {
    /// Its title.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Who may read it.
    pub read: Option<ReadPolicy>,
    /// Who may add documents.
    pub write: Option<WritePolicy>,
}

impl Space {
    /// The default space as it is before anyone changes it: everyone reads, every account writes.
    pub(crate) fn built_in(created_at: OffsetDateTime) -> Self {
        Self {
            name: SpaceName::default(),
            title: String::new(),
            description: String::new(),
            read: ReadPolicy::Everyone,
            write: WritePolicy::Accounts,
            created_at,
            updated_at: created_at,
            created_by: String::new(),
            deleting: None,
        }
    }

    /// A new space; invalid if its texts or its policies are not allowed.
    pub(crate) fn create(new: &NewSpace, created_at: OffsetDateTime) -> Result<Self> {
        let NewSpace { name, title, description, read, write, created_by } = new.clone();
        let (updated_at, deleting) = (created_at, None);
        Self { name, title, description, read, write, created_at, updated_at, created_by, deleting }.checked()
    }

    /// The space after a change; invalid if its texts or its policies are not allowed.
    pub(crate) fn changed(&self, change: &SpaceChange, now: OffsetDateTime) -> Result<Self> {
        let SpaceChange { title, description, read, write } = change.clone();
        let after = Self {
            title: title.unwrap_or_else(|| self.title.clone()),
            description: description.unwrap_or_else(|| self.description.clone()),
            read: read.unwrap_or(self.read),
            write: write.unwrap_or(self.write),
            ..self.clone()
        };
        if after == *self {
            return Ok(after);
        }
        Self { updated_at: now, ..after }.checked()
    }

    fn checked(self) -> Result<Self> {
        check_title(&self.title)?;
        if self.description.chars().count() > MAX_DESCRIPTION_CHARS {
            let reason = format!("must have at most {MAX_DESCRIPTION_CHARS} characters");
            return Err(Error::invalid("description", reason));
        }
        if self.write == WritePolicy::Accounts && self.read == ReadPolicy::Members {
            return Err(Error::invalid("write", "accounts needs read: everyone"));
        }
        Ok(self)
    }
}

/// Checks the title of a space or a group.
pub(crate) fn check_title(title: &str) -> Result<()> {
    if title.chars().count() <= MAX_TITLE_CHARS && !title.chars().any(char::is_control) {
        return Ok(());
    }
    let reason = format!("must have at most {MAX_TITLE_CHARS} characters and no control characters");
    Err(Error::invalid("title", reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_from_name_are_inverse() {
        for &role in SpaceRole::ALL {
            assert_eq!(SpaceRole::from_name(role.name()), Some(role));
        }
        assert!(SpaceRole::ALL.is_sorted() && SpaceRole::Reader < SpaceRole::Manager);
        assert_eq!(ReadPolicy::from_name("members"), Some(ReadPolicy::Members));
        assert_eq!(WritePolicy::from_name("everyone"), None);
    }

    #[test]
    fn space_with_long_texts_or_contradicting_policies_is_invalid() {
        let space = Space::built_in(OffsetDateTime::UNIX_EPOCH);
        let changed = |change: &SpaceChange| space.changed(change, OffsetDateTime::UNIX_EPOCH);
        let title = |title: String| SpaceChange { title: Some(title), ..SpaceChange::default() };
        assert!(changed(&title("é".repeat(MAX_TITLE_CHARS))).is_ok());
        assert!(changed(&title("é".repeat(MAX_TITLE_CHARS + 1))).is_err());
        assert!(changed(&title("a\nb".to_owned())).is_err());
        let read = |read| SpaceChange { read: Some(read), ..SpaceChange::default() };
        assert!(changed(&read(ReadPolicy::Members)).is_err());
        let both = SpaceChange { write: Some(WritePolicy::Members), ..read(ReadPolicy::Members) };
        assert!(changed(&both).is_ok());
        assert_eq!(changed(&SpaceChange::default()).unwrap(), space, "no difference keeps updated_at");
    }
}
