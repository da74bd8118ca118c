//! Spaces.

use actix_web::http::{Method, StatusCode};
use lkr::spaces::SpaceCounts;
use lkr_auth::{AuditAction, AuditLog};
use lkr_spaces::{Caller, Directory, Space, SpaceChange, SpaceName};
use serde_json::{Map, json};

use crate::{
    error::{ApiError, ErrorCode, KbResultExt},
    http::{
        Admin, ApiResponse, Endpoint, HandlerResult, Reader, RequestContext, SMALL_BODY_BYTES, SpaceManager,
        SpaceReader, cursor,
    },
    openapi::{CursorOf, OperationDoc, ResponseShape, schema},
    state::Services,
    wire::{
        spaces::{DeletedSpace, SpaceChangeInput, SpaceInput, SpaceItem, SpaceList},
        tasks::Accepted,
    },
};

const SPACE: &str = "/api/v1/spaces/{space}";

pub(super) fn endpoints() -> Vec<Endpoint> {
    let doc = |id, summary, shape| OperationDoc::new("Spaces", id, summary, ResponseShape::Envelope(shape));
    vec![
        Endpoint::new(
            Method::GET,
            "/api/v1/spaces",
            doc("list_spaces", "Lists the spaces that the caller may read, by name", schema::<SpaceList>())
                .paged('s', CursorOf::Name),
            list,
        ),
        Endpoint::new(
            Method::POST,
            "/api/v1/spaces",
            doc(
                "create_space",
                "Creates a space without members. The name of a deleted space cannot be used again",
                schema::<SpaceItem>(),
            )
            .status(StatusCode::CREATED)
            .body::<SpaceInput>()
            .errors(&[ErrorCode::Conflict]),
            create,
        ),
        Endpoint::new(Method::GET, SPACE, doc("get_space", "Returns a space", schema::<SpaceItem>()), get),
        Endpoint::new(
            Method::PATCH,
            SPACE,
            doc(
                "change_space",
                "Changes title, description and policies of a space. Rights change from the next request",
                schema::<SpaceItem>(),
            )
            .body::<SpaceChangeInput>(),
            change,
        ),
        Endpoint::new(
            Method::DELETE,
            SPACE,
            doc(
                "delete_space",
                "Deletes a space that has no documents; with documents=delete, accepts a task that deletes it with them",
                schema::<DeletedSpace>(),
            )
            .query_choice("documents", "delete: delete the documents of the space too.", ["delete"])
            .also_payload::<Accepted>(StatusCode::ACCEPTED, "A task of kind delete_space was accepted.")
            .errors(&[ErrorCode::Conflict]),
            delete,
        ),
    ]
}

async fn list(reader: Reader, cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let (limit, after) = (query.limit()? as usize, query.offset::<SpaceName>('s')?);
    query.finish()?;
    let (services, caller) = (cx.services()?, reader.spaces_caller());
    let directory = services.directory().await?;
    let mut spaces = directory.spaces().filter(|space| {
        after.as_ref().is_none_or(|after| space.name > *after) && directory.may_read(&caller, &space.name)
    });
    let shown: Vec<&Space> = spaces.by_ref().take(limit).collect();
    let next_offset = spaces.next().and(shown.last()).map(|space| cursor('s', &space.name));
    let counts = services.kb.counts_of_spaces(shown.iter().map(|space| &space.name)).await.for_read()?;
    let item = |(space, SpaceCounts { live, unfinished }): (&Space, SpaceCounts)| {
        let role = directory.role(&caller, &space.name);
        SpaceItem::new(space.clone(), live + unfinished, role)
    };
    let items = shown.into_iter().zip(counts).map(item).collect();
    ApiResponse::ok(&SpaceList { items, next_offset })
}

async fn create(Admin(caller): Admin, mut cx: RequestContext) -> HandlerResult {
    let input: SpaceInput = cx.json(SMALL_BODY_BYTES).await?;
    let new = input.check(&caller.account.username)?;
    let detail = [("read".to_owned(), json!(new.read.name())), ("write".to_owned(), json!(new.write.name()))];
    let detail = Map::from_iter(detail);
    let entry = AuditLog::entry(caller.actor(), AuditAction::SpaceCreate, new.name.as_str(), detail)?;
    let services = cx.services()?;
    let space = services.spaces.create(new, vec![entry]).await?;
    let directory = services.spaces.directory().await?;
    ApiResponse::created(&item(services, &directory, &caller.in_spaces(), space).await?)
}

async fn get(reader: SpaceReader, cx: RequestContext) -> HandlerResult {
    cx.no_query()?;
    let caller = reader.spaces_caller();
    let admitted = reader.admitted;
    ApiResponse::ok(&item(cx.services()?, &admitted.directory, &caller, admitted.space).await?)
}

async fn change(manager: SpaceManager, mut cx: RequestContext) -> HandlerResult {
    let input: SpaceChangeInput = cx.json(SMALL_BODY_BYTES).await?;
    let (caller, name) = (manager.caller, manager.admitted.space.name);
    let detail = Map::from_iter([("changed".to_owned(), json!(input.changed_names()))]);
    let entry = AuditLog::entry(caller.actor(), AuditAction::SpaceChange, name.as_str(), detail)?;
    let services = cx.services()?;
    let space = services.spaces.change(&name, SpaceChange::from(input), vec![entry]).await?;
    let directory = services.spaces.directory().await?;
    ApiResponse::ok(&item(services, &directory, &caller.in_spaces(), space).await?)
}

async fn delete(manager: SpaceManager, mut cx: RequestContext) -> HandlerResult {
    let mut query = cx.query()?;
    let is_delete = |text: &str| (text == "delete").then_some(());
    let with_documents = query.parsed("documents", "delete", is_delete)?.is_some();
    query.finish()?;
    cx.no_content().await?;
    let (caller, name) = (manager.caller, manager.admitted.space.name);
    let services = cx.services()?;
    let unchanged = services.spaces.check_no_admission(&name).await?;
    let has_documents = !name.is_default() && services.kb.documents_in(&name).await.for_write()? > 0;
    if has_documents && !with_documents {
        return Err(ApiError::conflict("the space has documents"));
    }
    let entry = AuditLog::entry(caller.actor(), AuditAction::SpaceDelete, name.as_str(), Map::new())?;
    if with_documents {
        let task = services.kb.delete_space(&name, &caller.creator(), vec![entry]).await.for_write()?;
        return ApiResponse::accepted(&Accepted::from(&task));
    }
    services.spaces.delete_empty(&name, vec![entry, unchanged]).await?;
    if let Err(error) = services.kb.discard_failed(&name).await {
        tracing::warn!(%error, space = %name, "cannot remove what failed tasks of a deleted space keep; it is removed with their records");
    }
    ApiResponse::ok(&DeletedSpace { space: name.into(), deleted: true })
}

/// A space as the caller sees it.
async fn item(
    services: &Services,
    directory: &Directory,
    caller: &Caller,
    space: Space,
) -> Result<SpaceItem, ApiError> {
    let documents = services.kb.documents_in(&space.name).await.for_read()?;
    let role = directory.role(caller, &space.name);
    Ok(SpaceItem::new(space, documents, role))
}
