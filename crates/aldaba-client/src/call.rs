//! One call of the API: the request, its retries, and the meaning of the answer.

use crate::retry::{CallProgress, Failed, Repeat};
use crate::transport::{HttpResponse, OpenAnswer};
use crate::{Client, Error, clock};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::{Duration, SystemTime};

/// The characters that a path or a query holds unescaped.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
/// The largest answer, in bytes. The largest payload fits, even as a string within JSON.
const MAX_ANSWER_BYTES: usize = 64 << 20;
/// The largest page of a list, in bytes. It is more than any page of Aldaba has.
const MAX_PAGE_BYTES: usize = 256 << 20;
/// How many characters of an unreadable answer are shown.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// A call that is being prepared. Its mistakes are reported when it is made.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    method: Method,
    path: Result<String, Error>,
    query: Vec<(String, String)>,
    body: Option<Result<Bytes, Error>>,
    repeat: Repeat,
    max_bytes: usize,
    /// A status besides 2xx with which the route answers what was asked.
    also: Option<StatusCode>,
}

impl Call {
    /// `parts`: fixed words and ids, the path below `/api/v1`.
    pub(crate) fn new(method: Method, parts: &[&str]) -> Self {
        Self {
            method,
            path: path(parts),
            query: Vec::new(),
            body: None,
            repeat: Repeat::Safe,
            max_bytes: MAX_ANSWER_BYTES,
            also: None,
        }
    }

    pub(crate) fn get(parts: &[&str]) -> Self {
        Self::new(Method::GET, parts)
    }

    pub(crate) fn post(parts: &[&str]) -> Self {
        Self::new(Method::POST, parts)
    }

    pub(crate) fn put(parts: &[&str]) -> Self {
        Self::new(Method::PUT, parts)
    }

    pub(crate) fn patch(parts: &[&str]) -> Self {
        Self::new(Method::PATCH, parts)
    }

    pub(crate) fn delete(parts: &[&str]) -> Self {
        Self::new(Method::DELETE, parts)
    }

    pub(crate) fn json(mut self, body: &impl Serialize) -> Self {
        let unfit = |error| Error::Request { detail: format!("the body cannot be written as JSON: {error}") };
        self.body = Some(serde_json::to_vec(body).map(Bytes::from).map_err(unfit));
        self
    }

    pub(crate) fn query(mut self, name: &str, value: &impl ToString) -> Self {
        self.query.push((name.to_owned(), value.to_string()));
        self
    }

    /// Adds every field that has a value; the items of a list are joined by commas.
    pub(crate) fn query_of(mut self, fields: &impl Serialize) -> Self {
        let Ok(Value::Object(fields)) = serde_json::to_value(fields) else { return self };
        for (name, value) in fields {
            let text = match value {
                Value::Null => continue,
                Value::String(text) => text,
                Value::Array(items) => {
                    let texts =
                        items.iter().map(|item| item.as_str().map_or(item.to_string(), str::to_owned));
                    texts.collect::<Vec<_>>().join(",")
                }
                other => other.to_string(),
            };
            self.query.push((name, text));
        }
        self
    }

    /// Marks that a repeated request would have a second effect.
    pub(crate) fn only_once(self) -> Self {
        Self { repeat: Repeat::Harms, ..self }
    }

    /// Marks that the answer is a page of a list.
    pub(crate) fn of_many(self) -> Self {
        Self { max_bytes: MAX_PAGE_BYTES, ..self }
    }

    /// Marks that this status is an answer too, unless its body is a refusal.
    pub(crate) fn also(self, status: StatusCode) -> Self {
        Self { also: Some(status), ..self }
    }

    /// Makes the call and reads the answer.
    pub(crate) async fn answer<T: DeserializeOwned>(self, client: &Client) -> Result<T, Error> {
        let answer = self.made(client).await?;
        let unreadable = |error| format!("it cannot be read ({error})");
        serde_json::from_slice(&answer.body)
            .map_err(|error| Error::unreadable(answer.status.as_u16(), unreadable(error)))
    }

    /// Makes the call and ignores the body of the answer.
    pub(crate) async fn done(self, client: &Client) -> Result<(), Error> {
        self.made(client).await.map(drop)
    }

    /// Makes the call and reads the head of the answer. The call is not repeated.
    pub(crate) async fn opened(self, client: &Client) -> Result<OpenAnswer, Error> {
        let request = self.request(client, None)?;
        let limit = client.retries.time_for_one(Duration::ZERO);
        match client.shared.transport.open(request, limit).await.map_err(|failed| failed.error)? {
            Ok(answer) => Ok(answer),
            Err(answer) => Err(refusal(&answer, &client.shared.token)),
        }
    }

    async fn made(self, client: &Client) -> Result<HttpResponse, Error> {
        let key = match (&self.method, &client.key) {
            (&Method::POST, Some(key)) if key.trim().is_empty() => {
                // Aldaba ignores a blank key, so that a repeat would have a second effect.
                return Err(Error::Request {
                    detail: "the idempotency key is blank; give one that names the operation, or none".into(),
                });
            }
            (&Method::POST, Some(key)) => Some(key.to_string()),
            (&Method::POST, None) => Some(clock::unique_key()?),
            _ => None,
        };
        let request = self.request(client, key.as_deref())?;
        let started = clock::now();
        let (mut tried, mut maybe_done) = (0, false);
        loop {
            tried += 1;
            let limit = client.retries.time_for_one(clock::now() - started);
            let result = client.shared.transport.send(request.clone(), self.max_bytes, limit).await;
            let failed = match result.and_then(|answer| accepted(answer, self.also, &client.shared.token)) {
                Ok(answer) => return Ok(answer),
                // An earlier request, whose answer was lost, may have deleted it.
                Err(failed) if maybe_done && self.method == Method::DELETE && failed.error.is_not_found() => {
                    return Ok(gone());
                }
                Err(failed) => failed,
            };
            maybe_done |= failed.maybe_done;
            let progress = CallProgress { tried, elapsed: clock::now() - started, chance: clock::chance() };
            let Some(pause) = client.retries.pause(&failed, progress, self.repeat) else {
                return Err(failed.error);
            };
            tracing::debug!(cause = %failed.error, tried, ?pause, "retrying a request");
            tokio::time::sleep(pause).await;
        }
    }

    fn request(&self, client: &Client, key: Option<&str>) -> Result<Request<Full<Bytes>>, Error> {
        let mut uri = format!("{}/api/v1{}", client.shared.base, self.path.clone()?);
        for (n, (name, value)) in self.query.iter().enumerate() {
            uri.push(if n == 0 { '?' } else { '&' });
            uri.extend(utf8_percent_encode(name, PLAIN));
            uri.push('=');
            uri.extend(utf8_percent_encode(value, PLAIN));
        }
        let body = self.body.clone().transpose()?;
        let mut request = Request::builder().method(self.method.clone()).uri(uri);
        if let Some(headers) = request.headers_mut() {
            headers.insert(AUTHORIZATION, client.shared.authorization.clone());
            headers.insert(USER_AGENT, client.shared.user_agent.clone());
            if body.is_some() {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            }
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        request.body(Full::new(body.unwrap_or_default())).map_err(|error| Error::Request {
            detail: format!("an id or the idempotency key cannot be sent ({error})"),
        })
    }
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct PlainAnswer {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

impl Client {
    /// What the server answers to a GET of a path such as `/metrics` or `/api/v1/health/ready`, whatever the status. It is asked
    /// once.
    ///
    /// # Errors
    /// If the server cannot be reached, or the path cannot be sent.
    pub async fn get_plain(&self, path: &str) -> Result<PlainAnswer, Error> {
        let request = Request::builder()
            .uri(format!("{}{path}", self.shared.base))
            .header(AUTHORIZATION, self.shared.authorization.clone())
            .header(USER_AGENT, self.shared.user_agent.clone())
            .body(Full::default())
            .map_err(|error| Error::Request { detail: format!("the path cannot be sent ({error})") })?;
        let limit = self.retries.time_for_one(Duration::ZERO);
        let sent = self.shared.transport.send(request, MAX_ANSWER_BYTES, limit).await;
        let answer = sent.map_err(|failed| failed.error)?;
        Ok(PlainAnswer { status: answer.status.as_u16(), body: answer.body })
    }
}

fn path(parts: &[&str]) -> Result<String, Error> {
    let mut path = String::new();
    for part in parts {
        if matches!(*part, "" | "." | "..") {
            return Err(Error::Request { detail: format!("`{part}` is no id or name of anything") });
        }
        path.push('/');
        path.extend(utf8_percent_encode(part, PLAIN));
    }
    Ok(path)
}

fn gone() -> HttpResponse {
    HttpResponse { status: StatusCode::NO_CONTENT, headers: HeaderMap::new(), body: Bytes::new() }
}

fn accepted(answer: HttpResponse, also: Option<StatusCode>, token: &str) -> Result<HttpResponse, Failed> {
    if answer.status.is_success() {
        return Ok(answer);
    }
    let error = refusal(&answer, token);
    let is_object = || serde_json::from_slice::<Value>(&answer.body).is_ok_and(|body| body.is_object());
    if also == Some(answer.status) && !matches!(error, Error::Api { .. }) && is_object() {
        return Ok(answer);
    }
    // Aldaba refuses before it changes anything. A proxy may have passed the request on before it answered.
    let maybe_done = !matches!(error, Error::Api { .. }) || matches!(answer.status.as_u16(), 502 | 504);
    Err(Failed { error, maybe_done })
}

fn refusal(answer: &HttpResponse, token: &str) -> Error {
    let status = answer.status.as_u16();
    let retry_after = answer.headers.get(RETRY_AFTER).and_then(|value| retry_after(value, clock::calendar()));
    let parsed = serde_json::from_slice(&answer.body).ok();
    match parsed.and_then(|body| Error::from_body(status, &body, retry_after)) {
        Some(error) => error,
        None => {
            let text = String::from_utf8_lossy(&answer.body).replace(token, "…");
            let readable = text.chars().map(|c| if c.is_control() { ' ' } else { c });
            let shown: String = readable.take(MAX_SHOWN_CHARACTERS).collect();
            Error::Answer { status, detail: format!("it begins with `{}`", shown.trim()), retry_after }
        }
    }
}

/// Reads whole seconds, or a date; a date in the past means now.
fn retry_after(value: &HeaderValue, now: SystemTime) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that is too large is still a number of seconds.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let moment = httpdate::parse_http_date(text).ok()?;
    Some(moment.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, body: &'static str) -> Error {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, HeaderValue::from_static("3"));
        let status = StatusCode::from_u16(status).unwrap();
        refusal(&HttpResponse { status, headers, body: Bytes::from_static(body.as_bytes()) }, "the-token")
    }

    #[test]
    fn ids_cannot_change_the_path() {
        assert_eq!(path(&["app", "a/b?c#d é"]).unwrap(), "/app/a%2Fb%3Fc%23d%20%C3%A9");
        for nothing in ["", ".", ".."] {
            assert!(matches!(path(&["app", nothing]), Err(Error::Request { .. })));
        }
    }

    #[test]
    fn a_refusal_is_read_with_its_code_and_time() {
        let error = refused(429, r#"{"code": "rate_limit", "detail": "Too many"}"#);
        let Error::Api { status, code, retry_after, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*status, code.as_str(), *retry_after), (429, "rate_limit", Some(Duration::from_secs(3))));
        assert!(error.to_string().contains("Try again in 3s"));
    }

    #[test]
    fn a_status_that_a_route_answers_with_is_an_answer_unless_the_body_is_a_refusal() {
        let answer = |status: StatusCode, body: &'static str| {
            let answer =
                HttpResponse { status, headers: HeaderMap::new(), body: Bytes::from_static(body.as_bytes()) };
            accepted(answer, Some(StatusCode::SERVICE_UNAVAILABLE), "the-token")
                .map_err(|failed| failed.error)
        };
        assert!(answer(StatusCode::SERVICE_UNAVAILABLE, r#"{"status": "not_ready", "checks": []}"#).is_ok());
        let busy = answer(StatusCode::SERVICE_UNAVAILABLE, r#"{"code": "busy", "detail": "Too much"}"#);
        assert!(matches!(busy, Err(Error::Api { status: 503, .. })), "{busy:?}");
        let foreign = answer(StatusCode::SERVICE_UNAVAILABLE, "<html>Down for maintenance</html>");
        assert!(matches!(foreign, Err(Error::Answer { status: 503, .. })), "{foreign:?}");
        let other = answer(StatusCode::BAD_GATEWAY, r#"{"status": "not_ready", "checks": []}"#);
        assert!(matches!(other, Err(Error::Answer { status: 502, .. })), "{other:?}");
    }

    #[test]
    fn the_time_to_try_again_is_seconds_or_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_445_412_470);
        let read = |text: &'static str| retry_after(&HeaderValue::from_static(text), now);
        assert_eq!(read("3"), Some(Duration::from_secs(3)));
        assert_eq!(read("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::from_secs(10)));
        assert_eq!(read("Wed, 21 Oct 2015 07:27:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("99999999999999999999999"), Some(Duration::from_secs(u64::MAX)));
        for none in ["", "-1", "1.5", "soon", "Wed, 99 Oct 2015 07:28:00 GMT"] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn every_problem_of_a_refused_request_is_named() {
        let error = refused(
            422,
            r#"{"detail": [{"loc": ["body", "url"], "msg": "no URL", "type": "value_error"},
                           {"loc": ["body", "name"], "msg": "too long", "type": "value_error"}]}"#,
        );
        let Error::Api { problems, code, .. } = &error else { panic!("{error:?}") };
        assert_eq!((problems.len(), code.as_str()), (2, "validation"));
        let text = error.to_string();
        assert!(text.contains("body.url: no URL; body.name: too long"), "{text}");
    }

    #[test]
    fn the_error_of_a_foreign_answer_does_not_show_the_token() {
        let error = refused(502, "<html>\nBad gateway for the-token</html>");
        assert!(matches!(error, Error::Answer { status: 502, .. }));
        assert!(error.to_string().contains("Bad gateway for …"), "{error}");
        assert!(error.is_temporary());
    }
}
