//! A handler that answers each POST request with the bytes of a file: what an answer costs at least.
//!
//! `bare_handler ADDRESS FILE`, for `tools/cached_search.py`.

use std::{env, fs, io};

use actix_web::{
    App, HttpResponse, HttpServer,
    web::{self, Bytes},
};

#[actix_web::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, file] = arguments.as_slice() else {
        return Err(io::Error::other("usage: bare_handler ADDRESS FILE"));
    };
    let answer = Bytes::from(fs::read(file)?);
    let app = move || {
        let answer = answer.clone();
        let answered = move |_request: Bytes| {
            let answer = answer.clone();
            async move { HttpResponse::Ok().content_type("application/json").body(answer) }
        };
        App::new().default_service(web::post().to(answered))
    };
    HttpServer::new(app).bind(address)?.run().await
}
