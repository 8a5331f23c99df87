//! The queue of mails, and who gets them.

use super::scene::{ask, made};
use super::{Scene, at};
use crate::{
    Actor, ActorIdentity, AuditAction, AuditEntry, Change, Endpoint, EndpointConfig, Fence, MailBatch,
    MailChange, MailChanged, MailNumber, MailPermission, MailRecipient, MailSubscription, NewMail, NextMail,
    OutageMail, Quota, Record, Store,
};
use aldaba_delivery::{AppId, Health, HealthStatus, Timestamp};
use std::sync::Arc;
use std::time::Duration;

const OWNER: &str = "owner@example.com";

async fn change(scene: &Scene, change: MailChange) -> MailChanged {
    ask(|done| scene.store.change_mails(change, done)).await.unwrap()
}

fn about(scene: &Scene, endpoint: &Endpoint, kind: &'static str) -> NewMail {
    NewMail {
        org: Some(scene.org),
        recipient: MailRecipient::Endpoint(endpoint.app, endpoint.id),
        kind: kind.into(),
        body: r#"{"error": "ñ"}"#.into(),
        created_at: at(0),
        due_at: at(30),
        outage: None,
    }
}

fn to_operator(kind: &'static str) -> NewMail {
    NewMail {
        org: None,
        recipient: MailRecipient::Operator,
        kind: kind.into(),
        body: "{}".into(),
        created_at: at(0),
        due_at: at(0),
        outage: None,
    }
}

async fn endpoint_of(scene: &Scene, app: AppId, owner: Option<&str>) -> Endpoint {
    let owner_email = owner.map(str::to_owned);
    let endpoint = scene.new_endpoint(app).with(|config| config.owner_email = owner_email);
    assert_eq!(scene.create_endpoint(&endpoint).await, made());
    endpoint
}

async fn application(scene: &Scene, alert_email: Option<&str>) -> AppId {
    let alert_email = alert_email.map(str::to_owned);
    let application = crate::Application { alert_email, ..scene.new_application() };
    assert_eq!(scene.create_application(&application).await, made());
    application.id
}

async fn due(scene: &Scene, now: Timestamp) -> Option<MailBatch> {
    match scene.store.next_mail(now, now, None).await.unwrap() {
        NextMail::Due(batch) => Some(*batch),
        NextMail::At(_) => None,
    }
}

fn kinds(batch: &MailBatch) -> Vec<&str> {
    batch.mails.iter().map(|mail| mail.kind.as_str()).collect()
}

fn numbers(batch: &MailBatch) -> Vec<MailNumber> {
    batch.mails.iter().map(|mail| mail.number).collect()
}

pub async fn a_mail_is_kept_with_the_health_that_it_tells_of(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let endpoint = endpoint_of(&scene, app, Some(OWNER)).await;
    let event = scene.event(&scene.tenant(app).await.unwrap());
    let seq = scene.accepted(&event).await;
    let failed = Health { status: HealthStatus::Failed, changed_at: Some(at(1)), ..Health::default() };
    let mails = vec![about(&scene, &endpoint, "endpoint.failed")];
    let late = Health { epoch: 7, ..failed.clone() };
    let record = |attempts_before, health: &Health| Record {
        attempts_before,
        health: Some(health.clone()),
        mails: mails.clone(),
        ..scene.failed(&event, seq, at(9))
    };
    // A person has changed the health since: it is not written, and nothing is told.
    scene.record(vec![record(0, &late)]).await;
    assert_eq!(due(&scene, at(99)).await, None);
    scene.record(vec![record(1, &failed)]).await;
    // The fence holds: nothing is written.
    scene.record(vec![record(1, &failed)]).await;
    assert_eq!(scene.store.next_mail(at(29), at(29), None).await.unwrap(), NextMail::At(Some(at(30))));
    let found = due(&scene, at(30)).await.unwrap();
    assert_eq!((found.address.as_str(), found.message_id.as_deref(), found.sent_today), (OWNER, None, 0));
    let [mail] = &found.mails[..] else { panic!("{found:?}") };
    assert_eq!((mail.kind.as_str(), mail.body.as_str()), ("endpoint.failed", r#"{"error": "ñ"}"#));
    assert_eq!((mail.org, &mail.recipient), (Some(scene.org), &MailRecipient::Endpoint(app, endpoint.id)));
    assert_eq!(mail.application.as_ref().unwrap().name, "Panadería Sol");
    assert_eq!(mail.permission, MailPermission::Allowed);
    let described = mail.endpoint.as_ref().unwrap();
    assert_eq!((described.url.as_str(), described.pending), ("https://example.com/hook", 1));
    assert_eq!(described.status, HealthStatus::Failed);
}

pub async fn a_mail_goes_to_the_owner_or_else_to_the_application_or_is_not_queued(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let (with, without) =
        (application(&scene, Some("people@example.com")).await, application(&scene, None).await);
    let owned = endpoint_of(&scene, with, Some(OWNER)).await;
    let unowned = endpoint_of(&scene, with, None).await;
    let nobodys = endpoint_of(&scene, without, None).await;
    let mails = [&owned, &unowned, &nobodys].map(|endpoint| about(&scene, endpoint, "a"));
    assert_eq!(change(&scene, MailChange::Queue(mails.to_vec())).await.mails, 2);
    let of_application = NewMail { recipient: MailRecipient::Application(without), ..mails[0].clone() };
    assert_eq!(change(&scene, MailChange::Queue(vec![of_application])).await.mails, 0);
    let first = due(&scene, at(30)).await.unwrap();
    assert_eq!(first.address, OWNER);
    change(&scene, MailChange::Forget { mails: numbers(&first) }).await;
    let second = due(&scene, at(30)).await.unwrap();
    assert_eq!(second.address, "people@example.com");
    assert_eq!(second.mails[0].permission, MailPermission::Allowed, "an operator has given it");
    change(&scene, MailChange::Forget { mails: numbers(&second) }).await;
    assert_eq!(change(&scene, MailChange::Queue(vec![to_operator("b")])).await.mails, 1);
    let third = due(&scene, at(0)).await.unwrap();
    assert_eq!((third.address.as_str(), third.mails[0].org), ("", None));
    change(&scene, MailChange::Forget { mails: numbers(&third) }).await;
    assert_eq!(scene.store.next_mail(at(99), at(99), None).await.unwrap(), NextMail::At(None));
}

pub async fn mails_for_one_address_are_joined_until_they_are_composed(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let endpoint = endpoint_of(&scene, app, Some(OWNER)).await;
    let later = NewMail { due_at: at(50), ..about(&scene, &endpoint, "b") };
    let new = vec![about(&scene, &endpoint, "a"), later.clone()];
    change(&scene, MailChange::Queue(new)).await;
    assert_eq!(kinds(&due(&scene, at(30)).await.unwrap()), ["a"]);
    let NextMail::Due(joined) = scene.store.next_mail(at(30), at(60), None).await.unwrap() else { panic!() };
    assert_eq!(kinds(&joined), ["a", "b"]);
    let compose = |id: &str| MailChange::Compose { mails: numbers(&joined), message_id: id.into() };
    assert_eq!(change(&scene, compose("<1@example.com>")).await.mails, 2);
    // The first stays.
    assert_eq!(change(&scene, compose("<2@example.com>")).await.mails, 0);
    change(&scene, MailChange::Queue(vec![later])).await;
    let again = due(&scene, at(60)).await.unwrap();
    assert_eq!((again.message_id.as_deref(), kinds(&again)), (Some("<1@example.com>"), vec!["a", "b"]));
    let retry = MailChange::Retry { mails: numbers(&again), due_at: at(500) };
    assert_eq!(change(&scene, retry).await.mails, 2);
    let other = due(&scene, at(60)).await.unwrap();
    assert_eq!((other.message_id.as_deref(), other.mails.len()), (None, 1));
    change(&scene, MailChange::Sent { mails: numbers(&other), address: OWNER.into(), at: at(61) }).await;
    let last = due(&scene, at(500)).await.unwrap();
    assert_eq!((last.message_id.as_deref(), last.mails[0].attempts), (Some("<1@example.com>"), 1));
    assert_eq!(last.sent_today, 1);
    let next_day = Timestamp::from_millis(at(0).millis() + 24 * 3_600_000);
    assert_eq!(due(&scene, next_day).await.unwrap().sent_today, 0);
}

pub async fn each_step_of_an_outage_is_told_once_and_its_end_only_to_who_was_told(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let endpoint = endpoint_of(&scene, app, Some(OWNER)).await;
    let tell = async |says| {
        let mail = NewMail { outage: Some(says), ..about(&scene, &endpoint, "a") };
        change(&scene, MailChange::Queue(vec![mail])).await.mails
    };
    use OutageMail::{Failed, GivenUp, Over, Warning};
    assert_eq!(tell(Over).await, 0);
    assert_eq!((tell(Warning).await, tell(Warning).await), (1, 0));
    assert_eq!((tell(GivenUp).await, tell(Warning).await, tell(GivenUp).await), (1, 0, 0));
    assert_eq!((tell(Failed).await, tell(Warning).await, tell(Failed).await), (1, 0, 0));
    assert_eq!((tell(Over).await, tell(Over).await), (1, 0));
    assert_eq!((tell(Failed).await, tell(Over).await), (1, 1));
    assert_eq!((tell(GivenUp).await, tell(Over).await), (1, 1), "without a warning before");
}

pub async fn a_resume_ends_an_outage_that_was_told(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let endpoint = endpoint_of(&scene, app, Some(OWNER)).await;
    let event = scene.event(&scene.tenant(app).await.unwrap());
    let seq = scene.accepted(&event).await;
    let mut attempts_before = 0;
    let mut fail = async |told: bool, epoch| {
        let health = Health { status: HealthStatus::Failed, epoch, ..Health::default() };
        let mail =
            NewMail { outage: Some(OutageMail::Failed), ..about(&scene, &endpoint, "endpoint.failed") };
        let mails = if told { vec![mail] } else { Vec::new() };
        let record = scene.failed(&event, seq, at(9));
        scene.record(vec![Record { attempts_before, health: Some(health), mails, ..record }]).await;
        attempts_before += 1;
    };
    let resume = || Change::ResumeEndpoint {
        app,
        endpoint: endpoint.id,
        at: at(40),
        recovery: None,
        notices: Vec::new(),
    };
    fail(false, 0).await;
    scene.change(resume()).await;
    assert_eq!(due(&scene, at(99)).await, None, "nobody was told that it had failed");
    fail(true, 1).await;
    scene.change(resume()).await;
    assert_eq!(kinds(&due(&scene, at(99)).await.unwrap()), ["endpoint.failed", NewMail::RESUMED]);
}

/// An entry of the audit log of a caller of the portal.
fn by_portal(scene: &Scene, app: AppId) -> Arc<AuditEntry> {
    let identity = ActorIdentity::PortalToken { app, session: None };
    let actor = Actor { org: scene.org, identity };
    let action = AuditAction::new("endpoint.update", &app);
    Arc::new(AuditEntry { id: scene.id(), actor, action, count: 1 })
}

pub async fn an_address_that_a_portal_gives_gets_a_request_to_confirm_and_nothing_else(
    store: Arc<dyn Store>,
) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let new = scene.new_endpoint(app).with(|config| config.owner_email = Some(OWNER.into()));
    let create = Change::CreateEndpoint { endpoint: new.clone(), idempotency: None, notices: Vec::new() };
    assert_eq!(scene.change_by(create, Some(by_portal(&scene, app))).await, made());
    assert_eq!(scene.store.is_mail_address_confirmed(app, OWNER.into()).await.unwrap(), Some(false));
    let asked = due(&scene, at(0)).await.unwrap();
    assert_eq!((asked.address.as_str(), kinds(&asked)), (OWNER, vec![NewMail::CONFIRM]));
    assert_eq!(asked.mails[0].permission, MailPermission::Allowed);
    assert_eq!(asked.mails[0].recipient, MailRecipient::Unconfirmed(app, OWNER.into()));
    change(&scene, MailChange::Sent { mails: numbers(&asked), address: OWNER.into(), at: at(1) }).await;
    change(&scene, MailChange::Queue(vec![about(&scene, &new, "a")])).await;
    let held = due(&scene, at(30)).await.unwrap();
    assert_eq!(held.mails[0].permission, MailPermission::Unconfirmed(app));
    let later = at(7 * 3600);
    change(&scene, MailChange::Postpone { mails: numbers(&held), due_at: later }).await;
    // Asked once a day.
    let ask_again = |at| MailChange::AskConfirmation { app, address: OWNER.into(), at };
    assert_eq!(change(&scene, ask_again(at(3600))).await.mails, 0);
    let confirm = |address: &str| MailChange::Confirm { app, address: address.into(), at: at(4000) };
    assert_eq!(change(&scene, confirm("nobody@example.com")).await.mails, 0);
    assert_eq!(change(&scene, confirm(OWNER)).await.mails, 1);
    assert_eq!(change(&scene, confirm(OWNER)).await.mails, 0);
    let released = due(&scene, at(4000)).await.unwrap();
    assert_eq!((kinds(&released), &released.mails[0].permission), (vec!["a"], &MailPermission::Allowed));
    assert_eq!(change(&scene, ask_again(at(200_000))).await.mails, 0, "it is confirmed");
}

pub async fn an_application_asks_so_many_addresses_a_day_and_no_more(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let ask_one = async |n: u32, at| {
        let address = format!("{n}@example.com");
        change(&scene, MailChange::AskConfirmation { app, address, at }).await.mails
    };
    for n in 0..NewMail::MAX_CONFIRMATIONS_PER_DAY {
        assert_eq!(ask_one(n, at(0)).await, 1);
    }
    assert_eq!(ask_one(999, at(0)).await, 0);
    assert_eq!(ask_one(999, at(24 * 3600)).await, 1);
}

pub async fn an_address_that_an_operator_gives_needs_no_confirmation(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let endpoint = endpoint_of(&scene, app, Some(OWNER)).await;
    assert_eq!(scene.store.is_mail_address_confirmed(app, OWNER.into()).await.unwrap(), Some(true));
    // A portal that gives it once more takes nothing away.
    let was = Fence::from(&endpoint);
    let config = EndpointConfig { owner_email: Some("other@example.com".into()), ..endpoint.config.clone() };
    let other = Endpoint { config, ..endpoint.clone() };
    let update = |endpoint: &Endpoint, was: &Fence| Change::UpdateEndpoint {
        endpoint: endpoint.clone(),
        was: was.clone(),
        resume: false,
        notices: Vec::new(),
    };
    scene.change_by(update(&other, &was), Some(by_portal(&scene, app))).await;
    scene.change_by(update(&endpoint, &was), Some(by_portal(&scene, app))).await;
    let confirmed =
        async |address: &str| scene.store.is_mail_address_confirmed(app, address.into()).await.unwrap();
    assert_eq!(confirmed(OWNER).await, Some(true));
    assert_eq!(confirmed("other@example.com").await, Some(false));
    assert_eq!(confirmed("nobody@example.com").await, None);
    // What an operator gives afterwards is confirmed by that.
    scene.change(update(&other, &was)).await;
    assert_eq!(confirmed("other@example.com").await, Some(true));
}

pub async fn who_has_unsubscribed_gets_no_mails_of_this_endpoint(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let (one, two) =
        (endpoint_of(&scene, app, Some(OWNER)).await, endpoint_of(&scene, app, Some(OWNER)).await);
    let subscription = MailSubscription { subject: *one.id.as_bytes(), address: OWNER.into() };
    let is_subscribed = async || scene.store.is_subscribed(subscription.clone()).await.unwrap();
    assert!(is_subscribed().await);
    let unsubscribe = || MailChange::Unsubscribe { subscription: subscription.clone(), at: at(1) };
    assert_eq!(
        (change(&scene, unsubscribe()).await.mails, change(&scene, unsubscribe()).await.mails),
        (1, 0)
    );
    assert!(!is_subscribed().await);
    change(&scene, MailChange::Queue(vec![about(&scene, &one, "a"), about(&scene, &two, "b")])).await;
    let found = due(&scene, at(30)).await.unwrap();
    let permissions: Vec<_> = found.mails.iter().map(|mail| &mail.permission).collect();
    assert_eq!(permissions, [&MailPermission::Unwanted, &MailPermission::Allowed]);
    change(&scene, MailChange::Subscribe { subscription: subscription.clone() }).await;
    assert!(is_subscribed().await);
}

pub async fn a_mail_follows_its_recipient_to_another_address(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let endpoint = endpoint_of(&scene, app, Some(OWNER)).await;
    change(&scene, MailChange::Queue(vec![about(&scene, &endpoint, "a")])).await;
    let update = |owner: Option<&str>| Change::UpdateEndpoint {
        endpoint: endpoint.clone().with(|config| config.owner_email = owner.map(str::to_owned)),
        was: Fence::from(&endpoint),
        resume: false,
        notices: Vec::new(),
    };
    scene.change(update(Some("new@example.com"))).await;
    let found = due(&scene, at(30)).await.unwrap();
    assert_eq!(found.mails[0].permission, MailPermission::Moved("new@example.com".into()));
    let mail = found.mails[0].number;
    change(&scene, MailChange::Readdress { mail, address: "new@example.com".into() }).await;
    let moved = due(&scene, at(30)).await.unwrap();
    assert_eq!(
        (moved.address.as_str(), &moved.mails[0].permission),
        ("new@example.com", &MailPermission::Allowed)
    );
    scene.change(update(None)).await;
    assert_eq!(due(&scene, at(30)).await.unwrap().mails[0].permission, MailPermission::Unwanted);
}

pub async fn so_many_mails_wait_and_the_rest_is_counted(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    let endpoint = endpoint_of(&scene, app, Some(OWNER)).await;
    let each = NewMail::MAX_PENDING_PER_ADDRESS;
    let many = |count: u32, mail: NewMail| MailChange::Queue(vec![mail; usize::try_from(count).unwrap()]);
    let queued = change(&scene, many(each + 5, about(&scene, &endpoint, "a"))).await;
    assert_eq!(queued.mails, usize::try_from(each).unwrap());
    let mut seen = (0, 0);
    while let Some(batch) = due(&scene, at(30)).await {
        seen.0 += batch.mails.len();
        seen.1 += batch.mails.iter().map(|mail| mail.more).sum::<u32>();
        change(&scene, MailChange::Forget { mails: numbers(&batch) }).await;
    }
    assert_eq!(seen, (usize::try_from(each).unwrap(), 5));
    // Of an organization with many addresses.
    let to = |n: u32| NewMail {
        recipient: MailRecipient::Unconfirmed(app, format!("{n}@example.com")),
        ..about(&scene, &endpoint, NewMail::CONFIRM)
    };
    let all = (0..NewMail::MAX_PENDING + 3).map(to).collect();
    assert_eq!(
        change(&scene, MailChange::Queue(all)).await.mails,
        usize::try_from(NewMail::MAX_PENDING).unwrap()
    );
    assert_eq!(change(&scene, MailChange::Queue(vec![to_operator("b")])).await.mails, 1, "another queue");
    let first = due(&scene, at(30)).await.unwrap();
    assert_eq!(first.address, "", "it is due before the others");
    change(&scene, MailChange::Forget { mails: numbers(&first) }).await;
    let next = due(&scene, at(30)).await.unwrap();
    let forget = || MailChange::Forget { mails: numbers(&next) };
    assert_eq!(change(&scene, forget()).await, MailChanged { mails: 1, left_out: 3 });
    assert_eq!(change(&scene, forget()).await, MailChanged::default());
}

/// An endpoint of another organization with the same owner.
async fn endpoint_of_another(scene: &Scene, owner: &str) -> Endpoint {
    let application = crate::Application { org: scene.id(), alert_email: None, ..scene.new_application() };
    assert_eq!(scene.create_application(&application).await, made());
    let endpoint = Endpoint { org: application.org, ..scene.new_endpoint(application.id) };
    let endpoint = endpoint.with(|config| config.owner_email = Some(owner.into()));
    assert_eq!(scene.create_endpoint(&endpoint).await, made());
    endpoint
}

pub async fn mails_of_two_organizations_take_no_room_of_each_other_and_are_never_joined(
    store: Arc<dyn Store>,
) {
    let scene = Scene::new(store);
    let own = endpoint_of(&scene, application(&scene, None).await, Some(OWNER)).await;
    let others = endpoint_of_another(&scene, OWNER).await;
    let of_other = |kind| NewMail { org: Some(others.org), ..about(&scene, &others, kind) };
    let each = usize::try_from(NewMail::MAX_PENDING_PER_ADDRESS).unwrap();
    let flood = MailChange::Queue(vec![of_other("flood"); each + 50]);
    assert_eq!(change(&scene, flood).await.mails, each);
    assert_eq!(change(&scene, MailChange::Queue(vec![about(&scene, &own, "a")])).await.mails, 1);
    let mut own_mails = Vec::new();
    for _ in 0..2 {
        let NextMail::Due(batch) = scene.store.next_mail(at(30), at(30), Some(others.org)).await.unwrap()
        else {
            panic!("nothing is due")
        };
        assert!(batch.mails.iter().all(|mail| mail.org == batch.org), "{:?}", kinds(&batch));
        own_mails = batch.mails;
    }
    assert_eq!(own_mails.iter().map(|mail| (mail.kind.as_str(), mail.more)).collect::<Vec<_>>(), [("a", 0)]);
    // The mails of a day are counted apart, and together.
    let flood = scene.store.next_mail(at(30), at(30), Some(scene.org)).await.unwrap();
    let NextMail::Due(flood) = flood else { panic!("nothing is due") };
    change(&scene, MailChange::Sent { mails: numbers(&flood), address: OWNER.into(), at: at(30) }).await;
    let NextMail::Due(batch) = scene.store.next_mail(at(30), at(30), Some(others.org)).await.unwrap() else {
        panic!("nothing is due")
    };
    let counts = (batch.sent_today, batch.sent_today_by_all, batch.sent_today_of_organization);
    assert_eq!(counts, (0, 1, 0));
}

pub async fn all_organizations_together_have_a_limit_for_one_address(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let each = NewMail::MAX_PENDING_PER_ADDRESS;
    let mut kept = 0;
    for _ in 0..NewMail::MAX_PENDING_PER_ADDRESS_OF_ALL / each + 1 {
        let endpoint = endpoint_of_another(&scene, OWNER).await;
        let mail = NewMail { org: Some(endpoint.org), ..about(&scene, &endpoint, "a") };
        kept += change(&scene, MailChange::Queue(vec![mail; usize::try_from(each).unwrap()])).await.mails;
    }
    assert_eq!(kept, usize::try_from(NewMail::MAX_PENDING_PER_ADDRESS_OF_ALL).unwrap());
}

pub async fn organizations_take_turns_and_what_the_server_says_comes_first(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let mut organizations = Vec::new();
    for n in 0..3 {
        let endpoint = endpoint_of_another(&scene, &format!("{n}@example.com")).await;
        let mail = NewMail { org: Some(endpoint.org), ..about(&scene, &endpoint, "a") };
        // The first has much that is due earlier.
        let mails = if n == 0 { vec![NewMail { due_at: at(1), ..mail }; 150] } else { vec![mail] };
        change(&scene, MailChange::Queue(mails)).await;
        organizations.push(endpoint.org);
    }
    change(&scene, MailChange::Queue(vec![to_operator("alert.firing"), to_operator(NewMail::CRITICAL)]))
        .await;
    let (mut last, mut turns) = (None, Vec::new());
    for _ in 0..5 {
        let next = scene.store.next_mail(at(30), at(30), last).await.unwrap();
        let NextMail::Due(batch) = next else { panic!("{turns:?}") };
        if batch.org.is_none() {
            assert_eq!(kinds(&batch), [NewMail::CRITICAL, "alert.firing"]);
        }
        turns.push(batch.org);
        last = batch.org.or(last);
        change(&scene, MailChange::Forget { mails: numbers(&batch) }).await;
    }
    let [a, b, c] = organizations[..] else { panic!() };
    assert_eq!(turns, [None, Some(a), Some(b), Some(c), Some(a)]);
}

pub async fn a_mail_that_is_left_out_tells_nothing_of_an_outage(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let endpoint = endpoint_of(&scene, application(&scene, None).await, Some(OWNER)).await;
    let each = usize::try_from(NewMail::MAX_PENDING_PER_ADDRESS).unwrap();
    change(&scene, MailChange::Queue(vec![about(&scene, &endpoint, "a"); each])).await;
    let tell = async |says| {
        let mail = NewMail { outage: Some(says), ..about(&scene, &endpoint, "b") };
        change(&scene, MailChange::Queue(vec![mail])).await.mails
    };
    assert_eq!(tell(OutageMail::Failed).await, 0, "there is no room");
    let batch = due(&scene, at(30)).await.unwrap();
    change(&scene, MailChange::Forget { mails: numbers(&batch) }).await;
    assert_eq!(tell(OutageMail::Over).await, 0, "nobody was told that it had failed");
    assert_eq!((tell(OutageMail::Failed).await, tell(OutageMail::Over).await), (1, 1));
}

pub async fn letters_in_upper_case_make_no_other_reader_and_are_kept(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, Some("People@Example.com")).await;
    let given = "Owner@Example.com";
    let (one, two) =
        (endpoint_of(&scene, app, Some(given)).await, endpoint_of(&scene, app, Some(OWNER)).await);
    change(&scene, MailChange::Queue(vec![about(&scene, &one, "a"), about(&scene, &two, "b")])).await;
    let batch = due(&scene, at(30)).await.unwrap();
    assert_eq!((batch.address.as_str(), kinds(&batch)), (given, vec!["a", "b"]));
    change(&scene, MailChange::Sent { mails: numbers(&batch), address: given.into(), at: at(30) }).await;
    let subscription =
        |address: &str| MailSubscription { subject: *one.id.as_bytes(), address: address.into() };
    let unsubscribe = MailChange::Unsubscribe { subscription: subscription("OWNER@example.com"), at: at(1) };
    change(&scene, unsubscribe).await;
    assert!(!scene.store.is_subscribed(subscription(OWNER)).await.unwrap());
    change(&scene, MailChange::Queue(vec![about(&scene, &one, "a"), about(&scene, &two, "b")])).await;
    let batch = due(&scene, at(30)).await.unwrap();
    assert_eq!(batch.sent_today, 1);
    let permissions: Vec<_> = batch.mails.iter().map(|mail| &mail.permission).collect();
    assert_eq!(permissions, [&MailPermission::Unwanted, &MailPermission::Allowed]);
    let confirmed = scene.store.is_mail_address_confirmed(app, "PEOPLE@example.com".into()).await.unwrap();
    assert_eq!(confirmed, Some(true), "that of the application");
}

pub async fn addresses_of_one_mailbox_share_a_limit_and_few_of_them_are_asked(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    for address in ["owner+1@example.com", "Owner+2@example.com"] {
        let endpoint = endpoint_of(&scene, app, Some(address)).await;
        change(&scene, MailChange::Queue(vec![about(&scene, &endpoint, "a")])).await;
        let batch = due(&scene, at(30)).await.unwrap();
        assert_eq!((batch.address.as_str(), batch.mails.len()), (address, 1), "they are not joined");
        let sent_before = u32::from(address.starts_with('O'));
        assert_eq!((batch.sent_today, batch.sent_today_by_all), (0, sent_before), "{address}");
        let sent = MailChange::Sent { mails: numbers(&batch), address: address.into(), at: at(30) };
        change(&scene, sent).await;
    }
    let asked = async |n: u32, app, at| {
        let address = format!("owner+{n}@example.com");
        change(&scene, MailChange::AskConfirmation { app, address, at }).await.mails
    };
    for n in 10..10 + NewMail::MAX_CONFIRMATIONS_PER_MAILBOX {
        assert_eq!(asked(n, app, at(0)).await, 1);
    }
    let other = application(&scene, None).await;
    assert_eq!((asked(99, app, at(0)).await, asked(99, other, at(0)).await), (0, 1));
    assert_eq!(asked(99, app, at(24 * 3600)).await, 1);
}

pub async fn the_moment_of_the_last_mail_is_kept_over_midnight(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let midnight = Quota::next_day(at(0));
    let (evening, morning) = (midnight.before(Duration::from_secs(1)), midnight + Duration::from_secs(1));
    let tell = async || change(&scene, MailChange::Queue(vec![to_operator("alert.firing")])).await;
    tell().await;
    let first = due(&scene, evening).await.unwrap();
    assert_eq!(first.last_sent_at, None);
    let sent = MailChange::Sent { mails: numbers(&first), address: String::new(), at: evening };
    change(&scene, sent).await;
    tell().await;
    for now in [evening, morning] {
        let next = due(&scene, now).await.unwrap();
        assert_eq!(next.last_sent_at, Some(evening), "{now:?}");
    }
}

pub async fn who_has_unsubscribed_from_a_digest_gets_no_mails_of_its_organization(store: Arc<dyn Store>) {
    let scene = Scene::new(store);
    let own = endpoint_of(&scene, application(&scene, None).await, Some(OWNER)).await;
    let others = endpoint_of_another(&scene, OWNER).await;
    let subscription = MailSubscription { subject: *scene.org.as_bytes(), address: OWNER.into() };
    change(&scene, MailChange::Unsubscribe { subscription, at: at(1) }).await;
    let of_other = NewMail { org: Some(others.org), ..about(&scene, &others, "b") };
    change(&scene, MailChange::Queue(vec![about(&scene, &own, "a"), of_other])).await;
    for (last, permission) in [(others.org, MailPermission::Unwanted), (scene.org, MailPermission::Allowed)] {
        let next = scene.store.next_mail(at(30), at(30), Some(last)).await.unwrap();
        let NextMail::Due(batch) = next else { panic!("nothing is due") };
        assert_eq!(batch.mails[0].permission, permission);
    }
}

pub async fn a_portal_that_gives_many_addresses_is_refused_and_takes_no_confirmed_one_away(
    store: Arc<dyn Store>,
) {
    let scene = Scene::new(store);
    let app = application(&scene, None).await;
    endpoint_of(&scene, app, Some("0@example.com")).await;
    let give = async |address: String, at| {
        let endpoint = Endpoint { updated_at: at, ..scene.new_endpoint(app) };
        let endpoint = endpoint.with(|config| config.owner_email = Some(address));
        let create = Change::CreateEndpoint { endpoint, idempotency: None, notices: Vec::new() };
        scene.change_by(create, Some(by_portal(&scene, app))).await
    };
    let known =
        async |address: &str| scene.store.is_mail_address_confirmed(app, address.into()).await.unwrap();
    for n in 0..NewMail::MAX_UNCONFIRMED_PER_APPLICATION {
        assert_eq!(give(format!("many{n}@example.com"), at(i64::from(n))).await, made());
    }
    assert_eq!(give("more@example.com".into(), at(1_000)).await, crate::Changed::TooManyAddresses);
    assert_eq!(known("more@example.com").await, None);
    assert_eq!(give("MANY7@example.com".into(), at(1_000)).await, made(), "it is known");
    assert_eq!(give("0@example.com".into(), at(1_000)).await, made(), "it is confirmed");
    // What an operator gives is not refused, and needs no room of those.
    endpoint_of(&scene, app, Some("1@example.com")).await;
    // The oldest that nobody has confirmed in its time makes room.
    let late = at(50) + NewMail::CONFIRMATION_TIME;
    assert_eq!(give("more@example.com".into(), late).await, made());
    let found = (known("many0@example.com").await, known("many1@example.com").await);
    assert_eq!(found, (None, Some(false)));
    assert_eq!((known("0@example.com").await, known("1@example.com").await), (Some(true), Some(true)));
}
