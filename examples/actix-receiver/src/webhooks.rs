//! Between actix-web and the receiver. They speak of HTTP with different versions of the `http` crate, so names and
//! values are carried over as bytes.

use crate::shop;
use actix_web::http::StatusCode;
use actix_web::http::header::ContentType;
use actix_web::{Error, HttpRequest, HttpResponse, web};
use aldaba_receiver::http::{HeaderMap, HeaderName, HeaderValue, Method};
use aldaba_receiver::transactional::SqliteLedger;
use aldaba_receiver::{Answer, Receiver};
use serde_json::json;

pub(crate) async fn receive(
    request: HttpRequest,
    body: Result<web::Bytes, Error>,
    receiver: web::Data<Receiver<SqliteLedger>>,
) -> HttpResponse {
    let body = match body {
        Ok(body) => body,
        Err(error) => return unread(&error),
    };
    // A method that has no name here is not POST.
    let method = Method::from_bytes(request.method().as_str().as_bytes()).unwrap_or(Method::GET);
    into_response(&receiver.handle(&method, &headers(&request), body, shop::paid).await)
}

/// The body is too long, or did not come to its end. It is said as the receiver says things.
fn unread(error: &Error) -> HttpResponse {
    let status = error.as_response_error().status_code();
    HttpResponse::build(status)
        .content_type(ContentType::json())
        .body(json!({ "received": false, "error": error.to_string() }).to_string())
}

fn headers(request: &HttpRequest) -> HeaderMap {
    let mut headers = HeaderMap::with_capacity(request.headers().len());
    for (name, value) in request.headers() {
        let name = HeaderName::from_bytes(name.as_str().as_bytes());
        let value = HeaderValue::from_bytes(value.as_bytes());
        if let (Ok(name), Ok(value)) = (name, value) {
            // A header that came twice stays so: the receiver refuses a signature that is not clear.
            headers.append(name, value);
        }
    }
    headers
}

fn into_response(answer: &Answer) -> HttpResponse {
    let status = StatusCode::from_u16(answer.status().as_u16()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = HttpResponse::build(status);
    for (name, value) in answer.headers() {
        response.insert_header((name.as_str(), value.as_bytes()));
    }
    response.body(answer.body().clone())
}
