use super::*;
use crate::api::Access;
use aldaba_delivery::{AppId, OrgId};
use aldaba_engine::{NewKey, SystemEntropy, make_key};
use aldaba_store::{ActorIdentity, KeyScope, PortalExpiry, RevokedToken};
use jsonwebtoken::Header;
use serde_json::{Value, json};
use std::time::Duration;

const SECRET: &[u8] = b"a secret of the tests, long enough";
const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const ORG: &str = DEFAULT_ORGANIZATION;
const APP: &str = "app_23rb8YdGqMT0qIzpgGwdXfHirMu";
const MINUTE: Duration = Duration::from_secs(60);

fn org() -> OrgId {
    ORG.parse().unwrap()
}

fn app() -> AppId {
    APP.parse().unwrap()
}

fn secret() -> JwtSecret {
    JwtSecret::new(std::str::from_utf8(SECRET).unwrap()).unwrap()
}

fn tokens() -> Tokens {
    Tokens::new(&secret(), Credentials::default())
}

fn signed(claims: &Value, algorithm: Algorithm, secret: &[u8]) -> String {
    jsonwebtoken::encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret)).unwrap()
}

fn check(claims: &Value) -> Result<Caller, TokenError> {
    let tokens = tokens();
    let token = signed(claims, Algorithm::HS256, SECRET);
    let first = tokens.check(token.as_bytes(), NOW);
    let again = tokens.check(token.as_bytes(), NOW);
    assert_eq!(format!("{first:?}"), format!("{again:?}"), "a remembered token is judged the same");
    first
}

fn refusal(claims: &Value) -> Option<TokenError> {
    check(claims).err()
}

#[test]
fn an_issued_token_speaks_for_its_organization() {
    let caller = tokens().check(issue_token(&secret(), org(), NOW).as_bytes(), NOW).unwrap();
    assert_eq!((caller.org(), caller.app()), (org(), None));
    assert_eq!(caller.rights(), Rights::Scope(KeyScope::Admin));
    assert_eq!(caller.actor().identity, ActorIdentity::OrganizationToken { name: None });
}

#[test]
fn a_command_that_has_the_secret_is_told_apart_and_its_token_ends_soon() {
    let (tokens, token) = (tokens(), issue_command_token(&secret(), org(), NOW));
    let caller = tokens.check(token.as_bytes(), NOW).unwrap();
    assert_eq!(caller.actor().identity, ActorIdentity::CommandLine);
    assert_eq!(tokens.check(token.as_bytes(), NOW + MINUTE * 26).err(), Some(TokenError::Invalid));
}

#[test]
fn a_fresh_token_is_valid_on_a_clock_that_was_set_back() {
    let token = issue_token(&secret(), org(), NOW);
    let day_before = Timestamp::from_millis(NOW.millis() - 24 * 3600 * 1000);
    assert!(tokens().check(token.as_bytes(), day_before).is_ok());
}

#[test]
fn claims_decide_whom_a_token_speaks_for() {
    for claims in [json!({"sub": ORG}), json!({"sub": ORG, "iss": "another", "aud": "x"})] {
        let caller = check(&claims).unwrap();
        assert_eq!((caller.org(), caller.app(), caller.feature_flags()), (org(), None, None));
    }
    let caller = check(&json!({"sub": APP, "org": ORG})).unwrap();
    assert_eq!((caller.org(), caller.app()), (org(), Some(app())));
    assert_eq!(caller.rights(), Rights::Portal(Capabilities::all()));
    assert_eq!(caller.feature_flags(), Some(&[][..]), "it sees none that it does not name");
    assert_eq!(refusal(&json!({"sub": APP})), Some(TokenError::NoOrganization));
    assert_eq!(refusal(&json!({"sub": "admin"})), Some(TokenError::NoOrganization));
    assert_eq!(refusal(&json!({"sub": APP, "org": "x"})), Some(TokenError::NoApplication));
    assert_eq!(refusal(&json!({"sub": ORG, "org": ORG})), Some(TokenError::NoApplication));
    assert_eq!(refusal(&json!({})), Some(TokenError::Invalid));
    assert_eq!(refusal(&json!({"sub": 5})), Some(TokenError::Invalid));
}

#[test]
fn strange_claims_that_decide_nothing_make_no_token_invalid() {
    for (name, value) in [("iat", json!("yesterday")), ("feature_flags", json!(7)), ("by", json!([]))] {
        assert!(check(&json!({"sub": ORG, name: value})).is_ok(), "{name}");
        assert!(check(&json!({"sub": APP, "org": ORG, name: value})).is_ok(), "{name}");
    }
    let caller = check(&json!({"sub": APP, "org": ORG, "capabilities": "all"})).unwrap();
    assert!(caller.may(Access::Read).is_err(), "what cannot be read allows nothing");
}

#[test]
fn times_count_with_a_quarter_of_an_hour_of_tolerance() {
    let now = NOW.millis() / 1000;
    let token = |nbf: i64, exp: i64| refusal(&json!({"sub": ORG, "nbf": nbf, "exp": exp}));
    assert_eq!(token(now + 899, now - 899), None);
    assert_eq!(token(now, now - 901), Some(TokenError::Invalid));
    assert_eq!(token(now + 901, now), Some(TokenError::Invalid));
}

#[test]
fn a_remembered_token_still_expires() {
    let (tokens, claims) = (tokens(), json!({"sub": ORG, "exp": NOW.millis() / 1000}));
    let token = signed(&claims, Algorithm::HS256, SECRET);
    assert!(tokens.check(token.as_bytes(), NOW).is_ok());
    assert_eq!(tokens.check(token.as_bytes(), NOW + MINUTE * 16).err(), Some(TokenError::Invalid));
}

#[test]
fn other_keys_other_algorithms_and_garbage_are_refused() {
    let (tokens, claims) = (tokens(), json!({"sub": ORG}));
    let unsigned = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJvcmdfMjNyYjhZZEdxTVQwcUl6cGdHd2RYZkhpck11In0.";
    for token in [
        signed(&claims, Algorithm::HS256, b"another secret"),
        signed(&claims, Algorithm::HS512, SECRET),
        unsigned.to_owned(),
        String::new(),
        "..".to_owned(),
        "aldaba_".to_owned(),
        format!("aldaba_12345678_{}", "x".repeat(40)),
    ] {
        assert_eq!(tokens.check(token.as_bytes(), NOW).err(), Some(TokenError::Invalid), "{token}");
    }
    assert_eq!(tokens.check(SECRET, NOW).err(), Some(TokenError::IsTheSecret));
}

fn key(scope: KeyScope, app: Option<AppId>) -> (Tokens, String) {
    let expires_at = Some(NOW + MINUTE);
    let new = NewKey { org: org(), app, name: "a key".into(), scope, expires_at };
    let (key, text) = make_key(new, NOW, &SystemEntropy::new());
    let credentials = Credentials::default();
    credentials.keys.put(key);
    (Tokens::new(&secret(), credentials), text)
}

#[test]
fn a_key_counts_until_it_expires_or_is_revoked() {
    let (tokens, text) = key(KeyScope::Admin, None);
    let caller = tokens.check(text.as_bytes(), NOW).unwrap();
    assert_eq!((caller.org(), caller.app()), (org(), None));
    assert!(matches!(&caller.actor().identity, ActorIdentity::Key { name, .. } if name == "a key"));
    let last = NOW + (MINUTE - Duration::from_millis(1));
    assert!(tokens.check(text.as_bytes(), last).is_ok());
    assert_eq!(tokens.check(text.as_bytes(), NOW + MINUTE).err(), Some(TokenError::Expired));
    let CallerCredential::Key { id, .. } = caller.shown() else { panic!("a key") };
    tokens.credentials.keys.remove(id);
    assert_eq!(tokens.check(text.as_bytes(), NOW).err(), Some(TokenError::Invalid));
}

const EVERY: [Access; 12] = [
    Access::Known,
    Access::Read,
    Access::ReadOrganization,
    Access::ReadSecrets,
    Access::Send,
    Access::Attempt,
    Access::Manage,
    Access::ManageSecrets,
    Access::Erase,
    Access::Administer,
    Access::Admit,
    Access::Govern,
];

fn allowed(caller: &Caller) -> Vec<Access> {
    EVERY.into_iter().filter(|access| caller.may(*access).is_ok()).collect()
}

#[test]
fn a_scope_decides_what_a_key_may_do() {
    let of = |scope, app| {
        let (tokens, text) = key(scope, app);
        allowed(&tokens.check(text.as_bytes(), NOW).unwrap())
    };
    assert_eq!(of(KeyScope::Admin, None), EVERY);
    assert_eq!(of(KeyScope::Send, None), [Access::Known, Access::Send]);
    assert_eq!(of(KeyScope::Read, None), [Access::Known, Access::Read, Access::ReadOrganization]);
    let organizations = [Access::ReadOrganization, Access::Administer, Access::Govern];
    let rest: Vec<_> = EVERY.into_iter().filter(|access| !organizations.contains(access)).collect();
    assert_eq!(of(KeyScope::Admin, Some(app())), rest);
    assert_eq!(of(KeyScope::Send, Some(app())), [Access::Known, Access::Send]);
    assert_eq!(of(KeyScope::Read, Some(app())), [Access::Known, Access::Read]);
}

fn portal(capabilities: Option<&[Capability]>, session: Option<&str>) -> NewPortalToken {
    NewPortalToken {
        org: org(),
        app: app(),
        issued_at: NOW,
        now: NOW,
        lifetime: MINUTE * 60,
        capabilities: capabilities.map(|some| some.iter().copied().collect()),
        feature_flags: vec!["beta".into()],
        session: session.map(Into::into),
    }
}

#[test]
fn capabilities_decide_what_a_portal_token_may_do() {
    let of = |capabilities: Option<&[Capability]>| {
        let tokens = tokens();
        let token = tokens.issue_portal(&portal(capabilities, None));
        allowed(&tokens.check(token.as_bytes(), NOW).unwrap())
    };
    let all = [
        Access::Known,
        Access::Read,
        Access::ReadSecrets,
        Access::Attempt,
        Access::Manage,
        Access::ManageSecrets,
    ];
    assert_eq!(of(None), all);
    assert_eq!(of(Some(&[])), [Access::Known]);
    let with = |capability, more: &[Access]| {
        let expected: Vec<_> = [Access::Known, Access::Read].iter().chain(more).copied().collect();
        assert_eq!(of(Some(&[Capability::ViewBase, capability])), expected, "{capability:?}");
    };
    with(Capability::ViewBase, &[]);
    with(Capability::ManageTransformations, &[]);
    with(Capability::ViewEndpointSecret, &[Access::ReadSecrets]);
    with(Capability::ManageEndpointSecret, &[Access::ReadSecrets, Access::ManageSecrets]);
    with(Capability::CreateAttempts, &[Access::Attempt]);
    with(Capability::ManageEndpoint, &[Access::ReadSecrets, Access::Manage, Access::ManageSecrets]);
}

#[test]
fn a_portal_token_says_what_it_was_given_and_ends_with_its_lifetime() {
    let tokens = tokens();
    let token = tokens.issue_portal(&portal(None, Some("owner@1")));
    let caller = tokens.check(token.as_bytes(), NOW).unwrap();
    assert_eq!(caller.feature_flags(), Some(&["beta".to_owned()][..]));
    let who = ActorIdentity::PortalToken { app: app(), session: Some("owner@1".into()) };
    assert_eq!(caller.actor().identity, who);
    assert!(tokens.check(token.as_bytes(), NOW + MINUTE * 75).is_ok());
    assert_eq!(tokens.check(token.as_bytes(), NOW + MINUTE * 76).err(), Some(TokenError::Invalid));
}

#[test]
fn a_token_that_was_ended_counts_no_longer_however_its_signature_is_written() {
    let tokens = tokens();
    let (ended, other) =
        (tokens.issue_portal(&portal(None, None)), tokens.issue_portal(&portal(None, Some("s"))));
    let caller = tokens.check(ended.as_bytes(), NOW).unwrap();
    let CallerCredential::Token { mark, expires_at } = caller.shown() else { panic!("a token") };
    assert_eq!(expires_at, Some(NOW + MINUTE * 60));
    let token = RevokedToken { org: org(), mark, expires_at };
    tokens.credentials.revocations.add_token(token);
    assert_eq!(tokens.check(ended.as_bytes(), NOW).err(), Some(TokenError::Ended));
    assert!(tokens.check(other.as_bytes(), NOW).is_ok());
    // Four spellings of the last character stand for the same bytes.
    for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=".chars() {
        let spelled = format!("{}{last}", &ended[..ended.len() - 1]);
        assert!(tokens.check(spelled.as_bytes(), NOW).is_err(), "{last}");
    }
}

#[test]
fn portal_tokens_issued_before_a_cut_end_with_it() {
    let tokens = tokens();
    let before = tokens.issue_portal(&portal(None, Some("ana")));
    let later = NewPortalToken { issued_at: NOW + Duration::from_millis(1), ..portal(None, Some("ana")) };
    let later = tokens.issue_portal(&later);
    let undated = signed(&json!({"sub": APP, "org": ORG}), Algorithm::HS256, SECRET);
    let organization = issue_token(&secret(), org(), Timestamp::from_millis(NOW.millis() - 86_400_000));
    let now = NOW + MINUTE;
    for token in [&before, &later, &undated] {
        assert!(tokens.check(token.as_bytes(), now).is_ok());
    }
    let cut = PortalExpiry {
        app: app(),
        session: None,
        issued_before: NOW + Duration::from_millis(1),
        ends_at: now,
        expires_at: None,
    };
    tokens.credentials.revocations.add_cut(cut, Some(now));
    assert_eq!(tokens.check(before.as_bytes(), now).err(), Some(TokenError::Ended));
    assert_eq!(tokens.check(undated.as_bytes(), now).err(), Some(TokenError::Ended));
    assert!(tokens.check(later.as_bytes(), now).is_ok(), "in the same second, but after it");
    assert!(tokens.check(organization.as_bytes(), NOW).is_ok());
}

#[test]
fn a_token_of_a_session_lasts_a_week_whatever_it_says() {
    let issued = NOW.millis() / 1000;
    let claims = |more: Value| {
        let mut claims = json!({"sub": APP, "org": ORG, "session_id": "ana"});
        claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        claims
    };
    let day = 24 * 3600;
    assert_eq!(refusal(&claims(json!({"iat": issued - 6 * day}))), None);
    assert_eq!(refusal(&claims(json!({"iat": issued - 8 * day}))), Some(TokenError::Invalid));
    assert_eq!(
        refusal(&claims(json!({"exp": issued + day}))),
        Some(TokenError::Invalid),
        "nobody knows when"
    );
}
