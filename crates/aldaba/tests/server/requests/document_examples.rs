//! The examples of the API's document, sent as they stand; and the guides that its introduction leads to.

use crate::requests::matrix::{ids_for, operations, tenant};
use crate::support::receiver::Receiver;
use crate::support::running::Running;
use http::Method;
use serde_json::Value;

#[tokio::test]
async fn every_body_of_the_document_has_an_example_that_is_accepted_as_it_stands() {
    let server = Running::delivering().await;
    let receiver = Receiver::answering(200, "").await;
    let ids = tenant(&server.client, &receiver).await;
    let mut sent = 0;
    let mut all = operations(&server).await;
    all.sort_by_key(|operation| (operation.method != Method::POST, operation.path.matches('{').count()));
    for operation in all.iter().filter(|operation| operation.has_body) {
        let content = &operation.described["requestBody"]["content"]["application/json"];
        let example = content.get("example").filter(|example| example.is_object());
        let example =
            example.unwrap_or_else(|| panic!("{} {} has no example", operation.method, operation.path));
        let path = operation.filled(&ids_for(operation, &ids));
        let reply =
            server.client.send(operation.method.clone(), &path, &[], example.to_string().into()).await;
        assert!(reply.status.is_success(), "{} {path} {example}: {:?}", operation.method, reply.body);
        sent += 1;
    }
    assert!(sent > 40, "{sent}");
}

#[tokio::test]
async fn the_introduction_leads_to_every_guide_and_every_guide_is_a_page_that_runs_nothing() {
    let server = Running::start().await;
    let nobody = server.client.anonymous();
    let document = nobody.get("/openapi.json").await.expect(200);
    let introduction = document["info"]["description"].as_str().unwrap();
    let mut guides = vec!["overview".to_owned()];
    for (folder, prefix) in [("../../docs", ""), ("../../docs/recipes", "recipes/")] {
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name());
        let names = files.filter_map(|file| Some(format!("{prefix}{}", file.to_str()?.strip_suffix(".md")?)));
        guides.extend(names);
    }
    guides.sort_unstable();
    assert!(guides.len() > 36);
    let list = nobody.get("//docs/guides").await;
    assert_eq!(list.status, 200);
    let list = String::from_utf8(list.body.to_vec()).unwrap();
    for guide in &guides {
        let path = format!("/docs/guides/{guide}");
        assert!(introduction.contains(&format!("]({path})")), "{guide}");
        assert!(list.contains(&format!("href=\"{path}\"")), "{guide}");
        let page = nobody.get(&format!("/{path}")).await;
        assert_eq!(page.status, 200, "{guide}");
        assert_eq!(page.headers["content-type"], "text/html; charset=utf-8");
        let policy = page.headers["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'; style-src 'self';"), "{policy}");
        let html = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(html.contains("<h1 id=") && !html.contains("<script") && !html.contains("<!-- "), "{guide}");
        for link in links(&html) {
            let (file, place) = link.split_once('#').unwrap_or((link, ""));
            let within = match file {
                "" => html.clone(),
                file if file.starts_with('/') => {
                    let there = nobody.get(&format!("/{file}")).await;
                    assert_eq!(there.status, 200, "{guide}: {link}");
                    String::from_utf8(there.body.to_vec()).unwrap()
                }
                elsewhere => {
                    assert!(elsewhere.starts_with("https://"), "{guide}: {link}");
                    continue;
                }
            };
            assert!(place.is_empty() || within.contains(&format!("id=\"{place}\"")), "{guide}: {link}");
        }
    }
    assert_eq!(
        nobody.get("//docs/guides/guides.css").await.headers["content-type"],
        "text/css; charset=utf-8"
    );
    let missing: Value = nobody.get("//docs/guides/nothing").await.expect(404);
    assert!(missing["detail"].as_str().unwrap().contains("/docs/guides lists all"), "{missing}");
}

fn links(html: &str) -> impl Iterator<Item = &str> {
    html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next())
}

#[tokio::test]
async fn the_served_index_leads_to_every_recipe() {
    let server = Running::start().await;
    let nobody = server.client.anonymous();
    let index = nobody.get("//docs/guides/README").await;
    let index = String::from_utf8(index.body.to_vec()).unwrap();
    let written = std::fs::read_to_string("../../docs/README.md").unwrap();
    let recipes: Vec<_> =
        written.split("](recipes/").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(recipes.len() > 60, "{}", recipes.len());
    for recipe in recipes {
        let (page, place) = recipe.split_once(".md#").unwrap();
        let link = format!("/docs/guides/recipes/{page}#{place}");
        assert!(links(&index).any(|one| one == link), "the served index does not lead to {link}");
        let page = nobody.get(&format!("//docs/guides/recipes/{page}")).await;
        assert_eq!(page.status, 200, "{link}");
        let html = String::from_utf8(page.body.to_vec()).unwrap();
        assert!(html.contains(&format!("id=\"{place}\"")), "{link}");
        assert!(links(&html).any(|one| one == "/docs/guides/README#before-you-start"), "{link}");
    }
}
