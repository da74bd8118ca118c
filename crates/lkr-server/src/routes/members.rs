//! The members of spaces.

use actix_web::http::Method;
use lkr_auth::{AuditAction, AuditLog};
use lkr_spaces::{Member, MemberId, SpaceRole};
use serde_json::{Map, Value, json};

use super::users::exists;
use crate::{
    error::ApiError,
    http::{ApiResponse, Endpoint, HandlerResult, RequestContext, SMALL_BODY_BYTES, SpaceManager, cursor},
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    state::Services,
    wire::spaces::{DeletedMember, MemberInput, MemberItem, MemberList},
};

const MEMBERS: &str = "/api/v1/spaces/{space}/members";
const MEMBER: &str = "/api/v1/spaces/{space}/members/{member}";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Spaces", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            MEMBERS,
            doc("list_members", "Lists the members of a space", schema::<MemberList>())
                .paged('m', CursorOf::Text),
            list,
        ),
        Endpoint::new(
            Method::PUT,
            MEMBER,
            doc(
                "put_member",
                "Adds `user:<username>` or `group:<name>` to a space, or changes its role",
                schema::<MemberItem>(),
            )
            .body::<MemberInput>(),
            put,
        ),
        Endpoint::new(
            Method::DELETE,
            MEMBER,
            doc("delete_member", "Removes a member from a space", schema::<DeletedMember>())
                .any_text("member"),
            delete,
        ),
    ]
}

async fn list(manager: SpaceManager, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()? as usize, query.offset::<String>('m')?);
    query.finish()?;
    let services = cx.services()?;
    let admitted = manager.admitted;
    let mut members = admitted.directory.members(&admitted.space.name);
    members.retain(|member| after.as_ref().is_none_or(|after| member.label() > *after));
    let mut found = Vec::new();
    for member in members {
        if found.len() > limit {
            break;
        }
        if is_current(services, &member).await? {
            found.push(member);
        }
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    let next_offset = found.last().filter(|_| has_more).map(|member| cursor('m', member.label()));
    ApiResponse::ok(&MemberList { items: found.iter().map(MemberItem::from).collect(), next_offset })
}

/// Whether the account of a member exists still; a later account of the same name is another. Groups always do.
async fn is_current(services: &Services, member: &Member) -> Result<bool, ApiError> {
    match &member.id {
        MemberId::User(id) => exists(services, id, &member.name).await,
        MemberId::Group(_) => Ok(true),
    }
}

async fn put(manager: SpaceManager, mut cx: RequestContext) -> HandlerResult {
    let MemberInput { role } = cx.json(SMALL_BODY_BYTES).await?;
    let role = SpaceRole::from(role);
    let text = cx.decoded_part("member");
    let services = cx.services()?;
    let found = find(services, &text).await?;
    let found = found.ok_or_else(|| ApiError::invalid(format!("member: no user or group {text:?}")))?;
    let (caller, name) = (manager.caller, manager.admitted.space.name);
    let entry = AuditLog::entry(
        caller.actor(),
        AuditAction::SpaceMember,
        name.as_str(),
        detail(&found.label(), json!(role.name())),
    )?;
    let member = services.spaces.put_member(&name, found.id, &found.name, role, vec![entry]).await?;
    ApiResponse::ok(&MemberItem::from(&member))
}

async fn delete(manager: SpaceManager, mut cx: RequestContext) -> HandlerResult {
    cx.no_body().await?;
    let member = cx.decoded_part("member");
    let services = cx.services()?;
    let Some(found) = find(services, &member).await? else {
        return ApiResponse::ok(&DeletedMember { member, deleted: false });
    };
    let member = found.label();
    let (caller, name) = (manager.caller, manager.admitted.space.name);
    let action = AuditAction::SpaceMember;
    let entry = AuditLog::entry(caller.actor(), action, name.as_str(), detail(&member, Value::Null))?;
    let deleted = services.spaces.remove_member(&name, &found.id, vec![entry]).await?;
    ApiResponse::ok(&DeletedMember { member, deleted })
}

/// An account or a group, by its own name: accounts are found whatever the case of the letters.
struct Named {
    id: MemberId,
    name: String,
}

impl Named {
    /// `user:<username>` or `group:<name>`.
    fn label(&self) -> String {
        format!("{}:{}", self.id.kind(), self.name)
    }
}

/// The account or group that `user:<username>` or `group:<name>` names.
async fn find(services: &Services, member: &str) -> Result<Option<Named>, ApiError> {
    match member.split_once(':') {
        Some(("user", username)) => {
            let account = services.auth.account(username).await?;
            Ok(account.map(|account| Named { id: MemberId::User(account.id), name: account.username }))
        }
        Some(("group", group)) => {
            let directory = services.spaces.directory().await?;
            let group = group.parse().ok().and_then(|name| directory.group(&name));
            Ok(group.map(|group| Named { id: MemberId::Group(group.id), name: group.name.to_string() }))
        }
        _ => Ok(None),
    }
}

/// The details of the audit entry; the role is null if the member was removed.
fn detail(member: &str, role: Value) -> Map<String, Value> {
    Map::from_iter([("member".to_owned(), json!(member)), ("role".to_owned(), role)])
}
