//! Groups of accounts.

use actix_web::http::{Method, StatusCode};
use lkr_auth::{AuditAction, AuditLog};
use lkr_spaces::{GroupMember, GroupName};
use serde_json::{Map, Value, json};

use super::users::exists;
use crate::{
    error::{ApiError, ErrorCode},
    http::{
        Admin, AnyManager, ApiResponse, Endpoint, HandlerResult, RequestContext, SMALL_BODY_BYTES, cursor,
    },
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    wire::groups::{
        DeletedGroup, DeletedGroupMember, GroupInput, GroupItem, GroupList, GroupMemberItem, GroupMemberList,
    },
};

const GROUPS: &str = "/api/v1/groups";
const GROUP: &str = "/api/v1/groups/{group}";
const MEMBERS: &str = "/api/v1/groups/{group}/members";
const MEMBER: &str = "/api/v1/groups/{group}/members/{username}";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Groups", id, summary, ResponseShape::Envelope(shape));
    let not_found = &[ErrorCode::NotFound];
    vec![
        Endpoint::new(
            Method::GET,
            GROUPS,
            doc("list_groups", "Lists groups by name", schema::<GroupList>()).paged('g', CursorOf::Name),
            list,
        ),
        Endpoint::new(
            Method::POST,
            GROUPS,
            doc("create_group", "Creates a group without members", schema::<GroupItem>())
                .status(StatusCode::CREATED)
                .body::<GroupInput>()
                .errors(&[ErrorCode::Conflict]),
            create,
        ),
        Endpoint::new(
            Method::DELETE,
            GROUP,
            doc("delete_group", "Deletes a group and its memberships in spaces", schema::<DeletedGroup>())
                .errors(not_found),
            delete,
        ),
        Endpoint::new(
            Method::GET,
            MEMBERS,
            doc("list_group_members", "Lists the accounts in a group by name", schema::<GroupMemberList>())
                .paged('n', CursorOf::Text)
                .errors(not_found),
            list_members,
        ),
        Endpoint::new(
            Method::PUT,
            MEMBER,
            doc("put_group_member", "Adds an account to a group", schema::<GroupMemberItem>())
                .errors(not_found),
            put_member,
        ),
        Endpoint::new(
            Method::DELETE,
            MEMBER,
            doc("delete_group_member", "Removes an account from a group", schema::<DeletedGroupMember>())
                .any_text("username")
                .errors(not_found),
            delete_member,
        ),
    ]
}

async fn list(_: AnyManager, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()? as usize, query.offset::<GroupName>('g')?);
    query.finish()?;
    let directory = cx.services()?.directory().await?;
    let mut groups =
        directory.groups().filter(|group| after.as_ref().is_none_or(|after| group.name > *after));
    let page: Vec<_> = groups.by_ref().take(limit).collect();
    let next_offset = groups.next().and(page.last()).map(|group| cursor('g', &group.name));
    ApiResponse::ok(&GroupList { items: page.into_iter().map(GroupItem::from).collect(), next_offset })
}

async fn create(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let input: GroupInput = cx.json(SMALL_BODY_BYTES).await?;
    let new = input.check(&caller.account.username)?;
    let entry = AuditLog::entry(caller.actor(), AuditAction::GroupCreate, new.name.as_str(), Map::new())?;
    let group = cx.services()?.spaces.create_group(new, vec![entry]).await?;
    ApiResponse::created(&GroupItem::from(&group))
}

async fn delete(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let group = group(&cx)?;
    let entry = AuditLog::entry(caller.actor(), AuditAction::GroupDelete, group.as_str(), Map::new())?;
    cx.services()?.spaces.delete_group(&group, vec![entry]).await?;
    ApiResponse::ok(&DeletedGroup { group: group.to_string(), deleted: true })
}

async fn list_members(_: Admin, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()? as usize, query.offset::<String>('n')?);
    query.finish()?;
    let (services, group) = (cx.services()?, group(&cx)?);
    let directory = services.directory().await?;
    directory.group(&group).ok_or_else(unknown_group)?;
    let lower = |member: &GroupMember| member.username.to_ascii_lowercase();
    let mut members = directory.group_members(&group);
    members.retain(|member| after.as_ref().is_none_or(|after| lower(member) > *after));
    let mut found = Vec::new();
    for member in members {
        if found.len() > limit {
            break;
        }
        if exists(services, &member.account_id, &member.username).await? {
            found.push(member);
        }
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_offset = found.last().filter(|_| has_more).map(|member| cursor('n', lower(member)));
    let items = found.iter().map(GroupMemberItem::from).collect();
    ApiResponse::ok(&GroupMemberList { items, next_offset })
}

async fn put_member(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let (services, group, username) = (cx.services()?, group(&cx)?, cx.username());
    services.directory().await?.group(&group).ok_or_else(unknown_group)?;
    let account = services.auth.account(&username).await?;
    let account = account.ok_or_else(|| ApiError::invalid(format!("username: no user {username:?}")))?;
    let member = GroupMember { account_id: account.id, username: account.username };
    let detail = detail(&member.username, true);
    let entry = AuditLog::entry(caller.actor(), AuditAction::GroupMember, group.as_str(), detail)?;
    services.spaces.put_group_member(&group, member.clone(), vec![entry]).await?;
    ApiResponse::ok(&GroupMemberItem::from(&member))
}

async fn delete_member(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let (services, group, username) = (cx.services()?, group(&cx)?, cx.username());
    services.directory().await?.group(&group).ok_or_else(unknown_group)?;
    let Some(account) = services.auth.account(&username).await? else {
        return ApiResponse::ok(&DeletedGroupMember { username, deleted: false });
    };
    let detail = detail(&account.username, false);
    let entry = AuditLog::entry(caller.actor(), AuditAction::GroupMember, group.as_str(), detail)?;
    let deleted = services.spaces.remove_group_member(&group, &account.id, vec![entry]).await?;
    ApiResponse::ok(&DeletedGroupMember { username: account.username, deleted })
}

/// The details of the audit entry.
fn detail(username: &str, is_member: bool) -> Map<String, Value> {
    Map::from_iter([("username".to_owned(), json!(username)), ("is_member".to_owned(), json!(is_member))])
}

/// The group that the path names.
fn group(cx: &RequestContext) -> Result<GroupName, ApiError> {
    cx.path_part("group").parse().map_err(|_| unknown_group())
}

fn unknown_group() -> ApiError {
    ApiError::not_found("no such group")
}
