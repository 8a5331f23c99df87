//! Wrong ids, cursors and filters give pages that say so.

use super::browser::{Browser, text};
use crate::support::running::{Running, token};
use aldaba::DEFAULT_ORGANIZATION;
use aldaba::dashboard::routes;

#[tokio::test]
async fn wrong_ids_cursors_and_filters_are_pages_and_never_errors_of_the_server() {
    let server = Running::start().await;
    let app = server.application().await;
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    let wrong = ["nothing", "%00", "%ff", "app_", "..%2f", "%F0%9F%94%94", &"x".repeat(5000)];
    for route in routes().into_iter().filter(|route| route.method == "GET" && route.path != "/dashboard/live")
    {
        for id in wrong {
            let path = route.path.replace("{app}", &app).replace("{endpoint}", id).replace("{message}", id);
            for query in [
                "",
                "?after=x",
                "?after=%ff&reason=x&type=%00",
                "?reason=exhausted&app=x",
                "?q=%00%ff",
                "?newest=x",
                "?done=x&count=y",
            ] {
                let reply = browser.get(&format!("{path}{query}")).await;
                let status = reply.status.as_u16();
                assert!(status < 500, "{path}{query}: {status} {}", text(&reply));
                if status >= 400 {
                    assert!(text(&reply).contains("<h1>"), "{path}{query}: {status}");
                }
            }
        }
    }
    let page = text(&browser.get("/dashboard/apps/nothing").await);
    assert!(page.contains("There is no such application"), "{page}");
    let page = browser.get("/dashboard/apps?after=%3Cb%3E").await;
    assert_eq!(page.status, 422);
    assert!(text(&page).contains("The part “after” cannot be “&#60;b&#62;”"), "{}", text(&page));
}

#[tokio::test]
async fn a_page_is_in_the_language_of_the_browser_and_errors_are_too() {
    let server = Running::start().await;
    let browser = Browser::with(&server, &token(DEFAULT_ORGANIZATION)).await;
    let spanish = [("accept-language", "es-MX,es;q=0.9")];
    let page = browser.send(http::Method::GET, "/dashboard/apps/nothing", &spanish, String::new()).await;
    assert!(text(&page).contains("<html lang=\"es\"") && text(&page).contains("No existe esa aplicación"));
}
