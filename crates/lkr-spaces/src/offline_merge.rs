//! How spaces, groups and members are merged that were written while the store was away.
//!
//! A change counts if the store's record is unchanged; otherwise the store's record stays. But what takes rights away wins,
//! whichever side did it: removals, deletions, lower roles and narrower policies.

use lkr_state::{Key, MergePolicy, Merged, OfflineChange};

use crate::{
    ReadPolicy, Space, WritePolicy,
    records::{
        CLOSED, GROUPS, MEMBERS, SPACES, closed_key, decode_group, decode_member, decode_space, encode_space,
    },
};

/// The policy of the records of this crate.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpacesMergePolicy;

impl MergePolicy for SpacesMergePolicy {
    fn mirrored(&self) -> &'static [&'static str] {
        &["spaces/"]
    }

    /// A space and its members depend on whether its name was closed.
    fn depends_on(&self, key: &str, value: &[u8]) -> Vec<Key> {
        let space = if key.starts_with(SPACES) {
            decode_space(key, value).ok().map(|space| space.name)
        } else if key.starts_with(MEMBERS) {
            decode_member(key, value).ok().map(|(space, ..)| space)
        } else {
            None
        };
        Vec::from_iter(space.map(|name| closed_key(&name)))
    }

    fn merge(&self, change: &OfflineChange<'_>) -> Merged {
        match change.key {
            key if key.starts_with(SPACES) => merge_space(change),
            key if key.starts_with(MEMBERS) => merge_member(change),
            key if key.starts_with(GROUPS) => merge_group(change),
            // A closed name stays closed.
            key if key.starts_with(CLOSED) => change.ours.map_or(Merged::Keep, |_| change.accept()),
            _ => merge_removable(change),
        }
    }
}

/// A removal counts, on either side.
fn merge_removable(change: &OfflineChange<'_>) -> Merged {
    match (change.ours, change.theirs) {
        (None, _) => change.accept(),
        (Some(_), None) if change.base.is_some() => Merged::overruled(change.key, "it was removed meanwhile"),
        _ => change.accept_if_unchanged(),
    }
}

/// Whether the space of a change was deleted, or is being deleted.
fn is_closed(change: &OfflineChange<'_>) -> bool {
    let keys = change.ours.map(|ours| SpacesMergePolicy.depends_on(change.key, ours));
    keys.into_iter().flatten().any(|key| change.related(&key).is_some())
}

fn merge_space(change: &OfflineChange<'_>) -> Merged {
    let space = |value: Option<&[u8]>| value.and_then(|value| decode_space(change.key, value).ok());
    // The step that closes a name also writes the space, so that it is not taken for one that was closed by others.
    let begins_to_delete = space(change.ours).is_some_and(|ours| ours.deleting.is_some());
    if is_closed(change) && !begins_to_delete {
        return Merged::overruled(change.key, "the space was deleted meanwhile");
    }
    match (space(change.base), space(change.ours), space(change.theirs)) {
        (Some(base), Some(ours), Some(theirs)) if !change.is_unchanged() => {
            let merged = narrower(&base, &ours, &theirs);
            if merged == theirs {
                return Merged::overruled(change.key, "another process changed the space");
            }
            let value = encode_space(&merged);
            value.map_or(Merged::Keep, |value| Merged::Put { value: value.into(), ttl: change.ttl })
        }
        _ => merge_removable(change),
    }
}

/// The store's space, with policies that the change made narrower, and with its deletion.
fn narrower(base: &Space, ours: &Space, theirs: &Space) -> Space {
    let mut merged = theirs.clone();
    if ours.read != base.read && ours.read == ReadPolicy::Members {
        merged.read = ReadPolicy::Members;
    }
    let is_write_narrower = ours.write != base.write && ours.write == WritePolicy::Members;
    // Accounts cannot write what they cannot read.
    if is_write_narrower || merged.read == ReadPolicy::Members {
        merged.write = WritePolicy::Members;
    }
    merged.deleting = theirs.deleting.or(ours.deleting);
    merged
}

fn merge_member(change: &OfflineChange<'_>) -> Merged {
    if is_closed(change) {
        return Merged::overruled(change.key, "the space was deleted meanwhile");
    }
    let role = |value: Option<&[u8]>| {
        value.and_then(|value| decode_member(change.key, value).ok()).map(|(.., membership)| membership.role)
    };
    match (role(change.ours), role(change.theirs)) {
        (Some(ours), Some(theirs)) if ours < theirs => change.accept(),
        _ => merge_removable(change),
    }
}

/// A deleted group and a later one of its name are different.
fn merge_group(change: &OfflineChange<'_>) -> Merged {
    let id = |value: Option<&[u8]>| {
        value.and_then(|value| decode_group(change.key, value).ok()).map(|group| group.id)
    };
    match (change.ours, change.theirs) {
        (None, Some(_)) if id(change.base) != id(change.theirs) => {
            Merged::overruled(change.key, "the name belongs to another group now")
        }
        _ => merge_removable(change),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use lkr_domain::{GroupId, SpaceName};
    use time::OffsetDateTime;

    use super::*;
    use crate::{
        Group, GroupName, MemberId, SpaceRole,
        directory::Membership,
        records::{encode_closed, encode_group, encode_member, group_key, member_key, space_key},
    };

    type Value = Option<Vec<u8>>;

    fn merge_with(key: &str, closed: bool, base: &Value, ours: &Value, theirs: &Value) -> Merged {
        let closed = closed.then(|| encode_closed(OffsetDateTime::UNIX_EPOCH).unwrap().into());
        let related = BTreeMap::from([(closed_key(&name()), closed)]);
        SpacesMergePolicy.merge(&OfflineChange {
            key,
            base: base.as_deref(),
            ours: ours.as_deref(),
            theirs: theirs.as_deref(),
            ttl: None,
            related: &related,
            restricting: false,
        })
    }

    fn name() -> SpaceName {
        SpaceName::new("law").unwrap()
    }

    fn space(title: &str, read: ReadPolicy, write: WritePolicy) -> Value {
        let space = Space {
            name: name(),
            title: title.to_owned(),
            read,
            write,
            ..Space::built_in(OffsetDateTime::UNIX_EPOCH)
        };
        Some(encode_space(&space).unwrap())
    }

    fn put(value: &Value) -> Merged {
        Merged::Put { value: value.clone().unwrap().into(), ttl: None }
    }

    #[track_caller]
    fn assert_overruled(merged: &Merged) {
        assert!(matches!(merged, Merged::Overruled(_)), "{merged:?}");
    }

    #[test]
    fn change_of_a_space_counts_if_no_other_process_changed_it() {
        use ReadPolicy::{Everyone, Members};
        let key = space_key(&name());
        let merge = |base: &Value, ours: &Value, theirs: &Value| merge_with(&key, false, base, ours, theirs);
        let base = space("a", Everyone, WritePolicy::Accounts);
        let (renamed, other) =
            (space("b", Everyone, WritePolicy::Accounts), space("c", Everyone, WritePolicy::Accounts));
        assert_eq!(merge(&base, &renamed, &base), put(&renamed));
        assert_overruled(&merge(&base, &renamed, &other));
        assert_overruled(&merge(&None, &renamed, &other));
        assert_overruled(&merge(&base, &renamed, &None));
        assert_eq!(merge(&base, &None, &other), Merged::Delete);
        let narrow = space("b", Members, WritePolicy::Members);
        let merged = space("c", Members, WritePolicy::Members);
        assert_eq!(merge(&base, &narrow, &other), put(&merged), "narrower policies win");
        assert_overruled(&merge(&narrow, &base, &merged));
        assert_overruled(&merge_with(&key, true, &base, &renamed, &base));
        assert_overruled(&merge_with(&key, true, &None, &renamed, &None));
    }

    #[test]
    fn removal_of_a_member_and_the_lower_role_win() {
        let key = member_key(&name(), &MemberId::User("7".to_owned()));
        let role = |role| Some(encode_member(&Membership { name: "ada".to_owned(), role }).unwrap());
        let [reader, writer, manager] = [SpaceRole::Reader, SpaceRole::Writer, SpaceRole::Manager].map(role);
        let merge = |base: &Value, ours: &Value, theirs: &Value| merge_with(&key, false, base, ours, theirs);
        assert_eq!(merge(&None, &writer, &None), put(&writer));
        assert_eq!(merge(&reader, &manager, &reader), put(&manager), "nobody else changed it");
        assert_eq!(merge(&writer, &reader, &manager), put(&reader));
        assert_overruled(&merge(&writer, &manager, &reader));
        assert_overruled(&merge(&writer, &manager, &None));
        assert_eq!(merge(&writer, &None, &manager), Merged::Delete);
        assert_eq!(merge(&writer, &None, &None), Merged::Keep);
        assert_overruled(&merge_with(&key, true, &None, &writer, &None));
    }

    #[test]
    fn deletion_of_a_group_does_not_delete_a_later_one_of_its_name() {
        let group_name = GroupName::new("legal").unwrap();
        let key = group_key(&group_name);
        let group = || {
            let group = Group {
                name: group_name.clone(),
                id: GroupId::new(),
                title: String::new(),
                created_at: OffsetDateTime::UNIX_EPOCH,
                created_by: String::new(),
            };
            Some(encode_group(&group).unwrap())
        };
        let (first, second) = (group(), group());
        let merge = |base: &Value, ours: &Value, theirs: &Value| merge_with(&key, false, base, ours, theirs);
        assert_eq!(merge(&first, &None, &first), Merged::Delete);
        assert_overruled(&merge(&first, &None, &second));
        assert_overruled(&merge(&None, &first, &second));
        assert_eq!(merge(&None, &first, &None), put(&first));
    }
}
