//! A row of the route table.

use std::{fmt, future::Future, panic::AssertUnwindSafe};

use actix_web::{HttpRequest, HttpResponse, Route, guard, http::Method, web};
use futures_util::FutureExt;

use super::{
    access::{Access, Permission},
    admission::admit,
    context::RequestContext,
    response::{ApiResponse, HandlerResult},
};
use crate::{
    error::{ApiError, ErrorCode},
    openapi::OperationDoc,
    state::AppState,
};

/// A route: its method and path, who may call it, its documentation and its handler.
pub struct Endpoint {
    /// The method. A route for GET answers HEAD too.
    pub method: Method,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    pub(crate) doc: OperationDoc,
    pub(crate) route: Route,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({:?})", self.method, self.path, self.access)
    }
}

impl Endpoint {
    /// The row of a handler. The type of the handler's first argument decides who may call it.
    pub(crate) fn new<R, F, Fut>(method: Method, path: &'static str, doc: OperationDoc, handler: F) -> Self
    where
        R: Permission,
        F: Fn(R, RequestContext) -> Fut + Copy + 'static,
        Fut: Future<Output = HandlerResult> + 'static,
    {
        let service = move |request: HttpRequest| async move {
            let serving = serve(handler, request.clone());
            let result = AssertUnwindSafe(serving).catch_unwind().await;
            ApiResponse::into_http(result.unwrap_or_else(|_| Err(panicked())), &request)
        };
        let route = match method {
            Method::GET => web::route().guard(guard::Any(guard::Get()).or(guard::Head())),
            _ => web::method(method.clone()),
        };
        Self { method, path, access: R::ACCESS, doc, route: route.to(service) }
    }
}

impl Endpoint {
    /// Whether the OpenAPI document lists it. It lists no route of a protocol with a description of its own.
    #[must_use]
    pub const fn is_listed(&self) -> bool {
        self.doc.is_listed
    }
}

/// Admits a request, runs its handler, and waits for the memory of its response.
async fn serve<R: Permission, Fut: Future<Output = HandlerResult>>(
    handler: impl Fn(R, RequestContext) -> Fut,
    request: HttpRequest,
) -> HandlerResult {
    let mut cx = RequestContext::new(request.clone(), R::ACCESS)?;
    if cx.state().is_stopping() && is_work(cx.request().path()) {
        return Err(ApiError::new(ErrorCode::Overloaded, "the service is stopping"));
    }
    let admission = cx.admit().await?;
    let permission = R::from_admission(admission)
        .ok_or_else(|| ApiError::new(ErrorCode::Unauthenticated, "this needs a login"))?;
    let (state, client) = (cx.state_data(), cx.client().clone());
    let response = handler(permission, cx).await?;
    state.response_memory.reserve(&request, &client, response.size()).await?;
    Ok(response)
}

/// Whether requests to a path are work that a stopping service refuses. Others report on the service.
fn is_work(path: &str) -> bool {
    path.starts_with("/api/") || path == "/mcp"
}

fn panicked() -> ApiError {
    ApiError::new(ErrorCode::Internal, "the request failed because of a programming error; see the log")
}

/// Answers a path without a route. A bad credential is refused first, as everywhere under `/api/v1`.
pub(crate) async fn answer_unknown_path(request: HttpRequest) -> HttpResponse {
    let error = ApiError::not_found("no such path");
    let access = if request.path().starts_with("/api/v1/") { Access::Reader } else { Access::Public };
    refuse(request, access, error).await
}

/// Answers a method that a path does not have. A bad credential is refused first, unless the path is public.
pub(crate) async fn answer_wrong_method(request: HttpRequest, access: Access, allow: String) -> HttpResponse {
    let error = ApiError::wrong_method(request.method().as_str(), allow);
    refuse(request, access, error).await
}

async fn refuse(request: HttpRequest, access: Access, error: ApiError) -> HttpResponse {
    let state = request.app_data::<web::Data<AppState>>().cloned();
    let refusal = match state {
        Some(state) => admit(access, &request, &state).await.err().unwrap_or(error),
        _ => error,
    };
    ApiResponse::into_http(Err(refusal), &request)
}

#[cfg(test)]
mod tests {
    use actix_web::{App, test, web::Data};

    use super::*;
    use crate::{
        http::{Public, request_middleware},
        openapi::ResponseShape,
        state::AppOptions,
    };

    #[actix_web::test]
    async fn panic_in_a_handler_is_answered_500_without_its_message() {
        let broken = |_: Public, _: RequestContext| async { panic!("on purpose") };
        let doc = OperationDoc::new("Test", "broken", "Panics", ResponseShape::Raw("text/plain"));
        let endpoint = Endpoint::new(Method::GET, "/broken", doc, broken);
        let state = Data::new(AppState::new(AppOptions::default()));
        let app = App::new()
            .app_data(state.clone())
            .service(web::resource(endpoint.path).route(endpoint.route))
            .wrap(actix_web::middleware::from_fn(request_middleware));
        let app = test::init_service(app).await;
        let response = test::call_service(&app, test::TestRequest::with_uri("/broken").to_request()).await;
        assert_eq!(response.status().as_u16(), 500);
        let body: serde_json::Value = test::read_body_json(response).await;
        assert_eq!(body["code"], 2000);
        assert!(!body.to_string().contains("on purpose"));
        assert_eq!(state.in_flight(), 0);
    }
}
