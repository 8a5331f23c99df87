//! The client's types have the fields that the API's document names: no more, no fewer.

use crate::document;
use crate::running::Running;
use aldaba_client::*;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, Visitor, value::Error as NoField};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// A deserializer that only records the field names of a struct.
struct Listener<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Listener<'_> {
    type Error = NoField;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, NoField> {
        Err(NoField::custom("not a struct"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, NoField> {
        *self.0 = fields;
        Err(NoField::custom("heard enough"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

fn fields<'de, T: Deserialize<'de>>() -> BTreeSet<String> {
    let mut fields: &[&str] = &[];
    let _ = T::deserialize(Listener(&mut fields));
    fields.iter().map(|field| (*field).to_owned()).collect()
}

macro_rules! table {
    ($($name:literal => $kind:ty,)+) => {
        BTreeMap::from([$(($name, fields::<$kind>()),)+])
    };
}

/// What the document calls them.
fn bodies() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut bodies = table! {
        "ActorOut" => Actor,
        "AlertEmailIn" => AlertEmail,
        "AlertEmailOut" => AlertEmailState,
        "ApiKeyIn" => NewApiKey,
        "ApiKeyOut" => ApiKey,
        "ApiKeyPatch" => ApiKeyPatch,
        "AppPortalAccessIn" => NewPortalAccess,
        "AppPortalAccessOut" => PortalAccess,
        "ApplicationIn" => NewApplication,
        "ApplicationOut" => Application,
        "ApplicationPatch" => ApplicationPatch,
        "ApplicationStatsOut" => AttemptStats,
        "ApplicationTokenExpireIn" => ExpireTokens,
        "AttemptCountOut" => AttemptCount,
        "AttemptHeadersOut" => AttemptHeaders,
        "AttemptOut" => Attempt,
        "AuditOut" => AuditEntry,
        "BackgroundHealth" => BackgroundHealth,
        "BulkReplayIn" => BulkReplay,
        "CancelIn" => CancelMessages,
        "CertificateOut" => Certificate,
        "ChangeOut" => HealthChange,
        "ClockHealth" => ClockHealth,
        "CountOut" => ReplayCount,
        "DeliveryOut" => Delivery,
        "DestinationOut" => Destination,
        "DiscardIn" => Discard,
        "DiscardOut" => Discarded,
        "DispatchIn" => NewDispatch,
        "DispatchOut" => Dispatch,
        "EndpointIn" => NewEndpoint,
        "EndpointMessageOut" => EndpointMessage,
        "EndpointOut" => Endpoint,
        "EndpointPatch" => EndpointPatch,
        "EndpointStatsOut" => EndpointStats,
        "EndpointThrottleRateStatusOut" => Throttling,
        "EndpointUpdate" => EndpointUpdate,
        "EraseIn" => Erase,
        "ErasureCountOut" => ErasureCount,
        "EventExampleIn" => SendExample,
        "EventTypeFromOpenApi" => ImportedEventType,
        "EventTypeImportOpenApiIn" => ImportOpenApi,
        "EventTypeImportOpenApiOut" => ImportedOpenApi,
        "EventTypeImportOpenApiOutData" => ImportedEventTypes,
        "EventTypeIn" => NewEventType,
        "EventTypeOut" => EventType,
        "EventTypePatch" => EventTypePatch,
        "EventTypeStatsOut" => EventTypeStats,
        "EventTypeUpdate" => EventTypeUpdate,
        "FieldChangeOut" => FieldChange,
        "HeadersIn" => SetHeaders,
        "HeadersOut" => EndpointHeaders,
        "HeadersPatch" => HeadersPatch,
        "HealthOut" => EndpointHealth,
        "HealthReport" => Health,
        "AlertOut" => Alert,
        "HostOut" => Host,
        "IdentityIn" => Identity,
        "JobIn" => JobEnd,
        "LivenessReport" => Liveness,
        "ReadinessCheck" => ReadinessCheck,
        "ReadinessReport" => Readiness,
        "JobOut" => JobRecord,
        "KeySet" => KeySet,
        "LastErrorOut" => LastError,
        "MessageBatchIn" => NewBatch,
        "MessageBatchOut" => Batch,
        "MessageBatchResult" => BatchResult,
        "MessageIn" => NewMessage,
        "MessageOut" => Message,
        "MessagePrecheckIn" => Precheck,
        "MessagePrecheckOut" => Prechecked,
        "MtlsOut" => MutualTls,
        "NewApiKeyOut" => CreatedApiKey,
        "PartHealth" => PartHealth,
        "Planned" => PlannedAttempt,
        "PolicyIn" => NewPolicy,
        "PolicyLimit" => PolicyLimit,
        "PolicyProbe" => PolicyProbe,
        "PolicyRetention" => PolicyRetention,
        "PolicyRetryAfter" => PolicyRetryAfter,
        "PolicyTimeouts" => PolicyTimeouts,
        "PolicyUpdate" => PolicyUpdate,
        "PolicyOut" => Policy,
        "PreviewOut" => Previewed,
        "ProfileIn" => NewProfile,
        "ProfileSignature" => ProfileSignature,
        "ProfileUpdate" => ProfileUpdate,
        "ProfileOut" => Profile,
        "PublicKey" => PublicKey,
        "RawOut" => RawPayload,
        "ReleasedOut" => Released,
        "AlertRuleOut" => AlertRule,
        "AlertRulesOut" => AlertRules,
        "ReplayIn" => Replay,
        "RestartingTask" => RestartingTask,
        "RetentionOfDead" => RetentionOfDead,
        "RetentionOfDelivered" => RetentionOfDelivered,
        "ResentOut" => Resent,
        "ResumeIn" => Resume,
        "ResumedOut" => Resumed,
        "RotateIn" => RotateSecret,
        "ScopeOut" => HostScope,
        "SearchIn" => MessageSearch,
        "SecretOut" => SigningSecret,
        "SourceAnswer" => SourceAnswer,
        "SourceCountersOut" => SourceCounters,
        "SourceEventOut" => SourceEvent,
        "SourceIn" => NewSource,
        "SourceLogOut" => SourceRefusal,
        "SourceOut" => Source,
        "SourcePatch" => SourcePatch,
        "HeaderCondition" => HeaderCondition,
        "RotateTokenOut" => IngestUrl,
        "TaskOut" => BackgroundTask,
        "DeliveringHealth" => DeliveringHealth,
        "TokensHealth" => TokensHealth,
        "TransformationsParams" => TransformationsParams,
        "WhoamiOut" => Whoami,
    };
    // Whether there is a record is read apart from the record.
    let dispatched = BTreeSet::from(["dispatched".to_owned()]);
    bodies.insert("JobDispatched", fields::<JobRecord>().union(&dispatched).cloned().collect());
    bodies.insert("NotDispatched", dispatched);
    bodies
}

/// What operations are asked besides `limit` and `iterator`.
fn queries() -> BTreeMap<&'static str, BTreeSet<String>> {
    let mut queries = table! {
        "v1.alert.list" => AlertFilter,
        "v1.api-key.list" => Ordered,
        "v1.application.export" => ExportOptions,
        "v1.application.list" => Ordered,
        "v1.application.stats.attempts" => AttemptStatsFilter,
        "v1.audit.list" => AuditFilter,
        "v1.background-task.list" => TaskFilter,
        "v1.delivery.dead-letter" => DeadLetterFilter,
        "v1.delivery.list" => DeliveryFilter,
        "v1.delivery.list-attempts" => WithContent,
        "v1.dispatch.list" => DispatchFilter,
        "v1.endpoint.get-stats" => Between,
        "v1.endpoint.health" => Ordered,
        "v1.endpoint.list" => Ordered,
        "v1.event-type.list" => EventTypeFilter,
        "v1.ingest.endpoint.list" => Ordered,
        "v1.ingest.event.list" => SourceEventFilter,
        "v1.ingest.log.list" => Ordered,
        "v1.ingest.source.list" => Ordered,
        "v1.job.list" => JobFilter,
        "v1.message-attempt.count-by-endpoint" => AttemptFilter,
        "v1.message-attempt.list" => AttemptFilter,
        "v1.message-attempt.list-attempted-destinations" => DestinationFilter,
        "v1.message-attempt.list-attempted-messages" => EndpointMessageFilter,
        "v1.message-attempt.list-by-endpoint" => AttemptFilter,
        "v1.message-attempt.list-by-msg" => AttemptFilter,
        "v1.message-attempt.list-by-msg-and-endpoint" => AttemptFilter,
        "v1.message.list" => MessageFilter,
        "v1.operational-webhook.endpoint.list" => Ordered,
        "v1.policy.preview" => Preview,
    };
    // A route with one purpose has its own method.
    let alone = [
        ("v1.application.create", "get_if_exists"),
        ("v1.delivery.get", "with_content"),
        ("v1.event-type.delete", "expunge"),
        ("v1.message.create", "with_content"),
        ("v1.message.get", "with_content"),
        ("v1.host.list", ""),
    ];
    queries.extend(alone.map(|(id, name)| {
        (id, if name.is_empty() { BTreeSet::new() } else { BTreeSet::from([name.to_owned()]) })
    }));
    queries
}

/// Schemas of errors and empty bodies, those that are only parts of others, and those that have one of several forms.
const KNOWN_OTHERWISE: [&str; 12] = [
    "EndpointRateLimitStatus",
    "Error",
    "Nothing",
    "PolicyEndpointFails",
    "PolicyGate",
    "PolicyJitter",
    "PolicyRedirects",
    "PolicySchedule",
    "Problems",
    "Record",
    "RetriesOut",
    "Status",
];

fn properties(document: &Value, schema: &Value) -> BTreeSet<String> {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return properties(document, &document["components"]["schemas"][name]);
    }
    let parts = schema["allOf"].as_array().into_iter().flatten();
    let mut all: BTreeSet<_> = parts.flat_map(|part| properties(document, part)).collect();
    all.extend(schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys().cloned()));
    all
}

#[tokio::test]
async fn every_body_of_the_document_has_a_type_with_its_fields() {
    let server = Running::start().await;
    let document = document::read(server.address).await;
    let known = bodies();
    let mut wrong = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let is_list = name.starts_with("List") && schema["properties"]["iterator"].is_object();
        if is_list || KNOWN_OTHERWISE.contains(&name.as_str()) {
            continue;
        }
        let expected = properties(&document, schema);
        match known.get(name.as_str()) {
            None => wrong.push(format!("{name} has no type here; it has {expected:?}")),
            Some(fields) if *fields != expected => {
                let missing: Vec<_> = expected.difference(fields).collect();
                let too_many: Vec<_> = fields.difference(&expected).collect();
                wrong.push(format!("{name}: missing {missing:?}, too many {too_many:?}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.stop().await;
}

/// Some parameters are known only because other clients send them unasked.
fn has_effect(parameter: &Value) -> bool {
    let about = parameter["description"].as_str().unwrap();
    !about.starts_with("Has no effect") && parameter["schema"]["enum"] != json!([false])
}

#[tokio::test]
async fn everything_that_an_operation_may_be_asked_can_be_asked() {
    let server = Running::start().await;
    let document = document::read(server.address).await;
    let known = queries();
    let mut wrong = Vec::new();
    for operation in
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap())
    {
        let id = operation.1["operationId"].as_str().unwrap();
        let parameters = operation.1["parameters"].as_array().unwrap().iter();
        let asked: BTreeSet<_> = parameters
            .filter(|parameter| parameter["in"] == "query" && has_effect(parameter))
            .filter_map(|parameter| parameter["name"].as_str().map(str::to_owned))
            .filter(|name| !["limit", "iterator"].contains(&name.as_str()))
            .collect();
        let missing: Vec<_> = match known.get(id) {
            Some(known) => asked.difference(known).collect(),
            None => asked.iter().collect(),
        };
        if !missing.is_empty() {
            wrong.push(format!("{id}: {missing:?} cannot be asked"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    server.stop().await;
}
