//! The application that the server and the tests run.

use std::collections::BTreeMap;

use actix_web::{
    App, Error, HttpRequest, HttpResponse,
    body::BoxBody,
    dev::{ServiceFactory, ServiceRequest, ServiceResponse},
    http::Method,
    middleware::{Condition, from_fn},
    web::{self, Data},
};

use crate::{
    http::{
        Access, ApiResponse, Endpoint, answer_unknown_path, answer_wrong_method, cors, refused_preflights,
        request_middleware,
    },
    routes::{endpoints, page_of_path, process_endpoints},
    state::AppState,
};

/// The application over a state, built from the route table.
pub fn create_app(
    state: Data<AppState>,
) -> App<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<BoxBody>,
        Error = Error,
        InitError = (),
    >,
> {
    let origins = &state.options.cors_origins;
    let cors = Condition::new(!origins.is_empty(), cors(origins));
    let is_worker_only = state.options.is_worker_only;
    let mut app = App::new().app_data(state);
    app = match is_worker_only {
        true => app.default_service(web::to(answer_unknown_path)),
        false => app.default_service(web::to(answer_other_path)),
    };
    let endpoints = if is_worker_only { process_endpoints() } else { endpoints() };
    for (path, endpoints) in by_path(endpoints) {
        app = app.service(resource(path, endpoints));
    }
    app.wrap(cors).wrap(from_fn(refused_preflights)).wrap(from_fn(request_middleware))
}

/// Answers a path without a route: with a page of the console, or with a refusal.
async fn answer_other_path(request: HttpRequest) -> HttpResponse {
    match page_of_path(&request).await {
        Some(page) => ApiResponse::into_http(page.map(ApiResponse::Raw), &request),
        None => answer_unknown_path(request).await,
    }
}

/// Groups the endpoints by path, those without parameters first: requests are compared with the paths one after another,
/// and with parameters that is a regular expression.
fn by_path(endpoints: Vec<Endpoint>) -> Vec<(&'static str, Vec<Endpoint>)> {
    let mut positions = BTreeMap::new();
    let mut paths: Vec<(&'static str, Vec<Endpoint>)> = Vec::new();
    for endpoint in endpoints {
        let next = paths.len();
        let position = *positions.entry(endpoint.path).or_insert(next);
        match paths.get_mut(position) {
            Some((_, same_path)) => same_path.push(endpoint),
            None => paths.push((endpoint.path, vec![endpoint])),
        }
    }
    paths.sort_by_key(|(path, _)| path.contains('{'));
    paths
}

fn resource(path: &'static str, endpoints: Vec<Endpoint>) -> actix_web::Resource {
    let allow = allowed_methods(&endpoints);
    let access = access_of_wrong_methods(&endpoints);
    let resource = web::resource(path)
        .default_service(web::to(move |request| answer_wrong_method(request, access, allow.clone())));
    endpoints.into_iter().fold(resource, |resource, endpoint| resource.route(endpoint.route))
}

/// The access that a request with a wrong method is checked against: none where the path has a public route, and never
/// more than a reader's.
fn access_of_wrong_methods(endpoints: &[Endpoint]) -> Access {
    let public = [Access::Public, Access::PublicVerified];
    let found = public.into_iter().find(|access| endpoints.iter().any(|row| row.access == *access));
    found.unwrap_or(Access::Reader)
}

fn allowed_methods(endpoints: &[Endpoint]) -> String {
    let mut methods: Vec<&str> = endpoints.iter().map(|endpoint| endpoint.method.as_str()).collect();
    if endpoints.iter().any(|endpoint| endpoint.method == Method::GET) {
        methods.push("HEAD");
    }
    methods.join(", ")
}
