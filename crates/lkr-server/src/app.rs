//! The application that the server runs, and tests too.

use std::collections::BTreeMap;

use actix_web::{
    App, Error,
    body::BoxBody,
    dev::{ServiceFactory, ServiceRequest, ServiceResponse},
    http::Method,
    middleware::from_fn,
    web::{self, Data},
};

use crate::{
    http::{Access, Endpoint, outer, refuse, refuse_method},
    routes::endpoints,
    state::AppState,
};

/// The application over a state, built from the table of routes.
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
    let mut app = App::new().app_data(state).default_service(web::to(refuse));
    for (path, rows) in by_path(endpoints()) {
        app = app.service(resource(path, rows));
    }
    app.wrap(from_fn(outer))
}

/// The rows by path. The order of paths is the table's.
fn by_path(endpoints: Vec<Endpoint>) -> Vec<(&'static str, Vec<Endpoint>)> {
    let mut order = BTreeMap::new();
    let mut paths: Vec<(&'static str, Vec<Endpoint>)> = Vec::new();
    for endpoint in endpoints {
        let next = paths.len();
        let at = *order.entry(endpoint.path).or_insert(next);
        match paths.get_mut(at) {
            Some((_, rows)) => rows.push(endpoint),
            None => paths.push((endpoint.path, vec![endpoint])),
        }
    }
    paths
}

fn resource(path: &'static str, rows: Vec<Endpoint>) -> actix_web::Resource {
    let allow = allowed(&rows);
    let access = refused_as(&rows);
    let resource = web::resource(path)
        .default_service(web::to(move |request| refuse_method(request, access, allow.clone())));
    rows.into_iter().fold(resource, |resource, row| resource.route(row.route))
}

/// Whose credential is looked at where a method is wrong: nobody's where the path is open to all, and nobody is
/// refused for reading what needs no login.
fn refused_as(rows: &[Endpoint]) -> Access {
    let least = [Access::Open, Access::Unlisted];
    let found = least.into_iter().find(|least| rows.iter().any(|row| row.access == *least));
    found.unwrap_or(Access::Reader)
}

fn allowed(rows: &[Endpoint]) -> String {
    let mut methods: Vec<&str> = rows.iter().map(|row| row.method.as_str()).collect();
    if rows.iter().any(|row| row.method == Method::GET) {
        methods.push("HEAD");
    }
    methods.join(", ")
}
