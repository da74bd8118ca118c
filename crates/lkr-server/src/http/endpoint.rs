//! A row of the table of routes.

use std::{fmt, future::Future, panic::AssertUnwindSafe};

use actix_web::{
    HttpRequest, HttpResponse, Route, guard,
    http::Method,
    web::{self, Data},
};
use futures_util::FutureExt;

use super::{
    Answer, Cx, Reply, RequestId,
    access::{Access, Right, admit},
};
use crate::{
    error::{ApiError, Code},
    openapi::Doc,
    state::AppState,
};

/// A route: what it is called by, who may call it, what is said of it, and what it does.
pub struct Endpoint {
    /// The method. A route for GET answers HEAD too.
    pub method: Method,
    /// The path, with the names of its parts in braces.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    pub(crate) doc: Doc,
    pub(crate) route: Route,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({:?})", self.method, self.path, self.access)
    }
}

impl Endpoint {
    /// The row of a handler. What the handler takes as its first argument decides who may call it.
    pub(crate) fn new<R, F, Fut>(method: Method, path: &'static str, doc: Doc, handler: F) -> Self
    where
        R: Right,
        F: Fn(R, Cx) -> Fut + Copy + 'static,
        Fut: Future<Output = Answer> + 'static,
    {
        let work = move |request: HttpRequest| async move {
            let id = RequestId::of(&request);
            let serving = roomy(serve(handler, request.clone()), request);
            let answer = AssertUnwindSafe(serving).catch_unwind().await;
            Reply::respond(answer.unwrap_or_else(|_| Err(panicked())), &id)
        };
        let route = match method {
            Method::GET => web::route().guard(guard::Any(guard::Get()).or(guard::Head())),
            _ => web::method(method.clone()),
        };
        Self { method, path, access: R::ACCESS, doc, route: route.to(work) }
    }
}

async fn serve<R: Right, Fut: Future<Output = Answer>>(
    handler: impl Fn(R, Cx) -> Fut,
    request: HttpRequest,
) -> Answer {
    let cx = Cx::new(request, R::ACCESS)?;
    if cx.state().is_stopping() && cx.request().path().starts_with("/api/") {
        return Err(ApiError::new(Code::Overloaded, "the service is stopping"));
    }
    let caller = admit_to(R::ACCESS, cx.request(), cx.state()).await?;
    let granted =
        R::granted(caller).ok_or_else(|| ApiError::new(Code::Unauthenticated, "this needs a login"))?;
    handler(granted, cx).await
}

/// An answer, once there is room for it.
async fn roomy(answer: impl Future<Output = Answer>, request: HttpRequest) -> Answer {
    let answer = answer.await?;
    if let Some(state) = request.app_data::<Data<AppState>>() {
        state.answers.reserve(&request, answer.size()).await?;
    }
    Ok(answer)
}

pub(super) async fn admit_to(
    access: Access,
    request: &HttpRequest,
    state: &AppState,
) -> Result<Option<super::access::Caller>, ApiError> {
    if access == Access::Open {
        return Ok(None);
    }
    admit(access, request, state.services()?, state.options.require_login_for_reads).await
}

fn panicked() -> ApiError {
    ApiError::new(Code::Internal, "the request failed: a programming error, see the log")
}

/// Answers what no route is for. A bad credential is refused first, as everywhere under `/api/v1`.
pub(crate) async fn refuse(request: HttpRequest) -> HttpResponse {
    let error = ApiError::not_found("no such path");
    let access = if request.path().starts_with("/api/v1/") { Access::Reader } else { Access::Open };
    refuse_with(request, access, error).await
}

/// Answers a method that a path does not have. A credential is looked at unless the path is open to all.
pub(crate) async fn refuse_method(request: HttpRequest, access: Access, allow: String) -> HttpResponse {
    let error = ApiError::wrong_method(request.method().as_str(), allow);
    refuse_with(request, access, error).await
}

async fn refuse_with(request: HttpRequest, access: Access, error: ApiError) -> HttpResponse {
    let id = RequestId::of(&request);
    let state = request.app_data::<web::Data<AppState>>().cloned();
    let refusal = match state {
        Some(state) => admit_to(access, &request, &state).await.err().unwrap_or(error),
        _ => error,
    };
    Reply::respond(Err(refusal), &id)
}

#[cfg(test)]
mod tests {
    use actix_web::{App, test, web::Data};

    use super::*;
    use crate::{
        http::{Open, outer},
        openapi::Shape,
        state::AppOptions,
    };

    #[actix_web::test]
    async fn a_panic_is_an_answer_like_any_other() {
        let broken = |_: Open, _: Cx| async { panic!("on purpose") };
        let doc = Doc::new("Test", "broken", "Panics", Shape::Bare("text/plain"));
        let endpoint = Endpoint::new(Method::GET, "/broken", doc, broken);
        let state = Data::new(AppState::new(AppOptions::default()));
        let app = App::new()
            .app_data(state.clone())
            .service(web::resource(endpoint.path).route(endpoint.route))
            .wrap(actix_web::middleware::from_fn(outer));
        let app = test::init_service(app).await;
        let response = test::call_service(&app, test::TestRequest::with_uri("/broken").to_request()).await;
        assert_eq!(response.status().as_u16(), 500);
        let body: serde_json::Value = test::read_body_json(response).await;
        assert_eq!(body["code"], 2000);
        assert!(!body.to_string().contains("on purpose"));
        assert_eq!(state.in_flight(), 0);
    }
}
