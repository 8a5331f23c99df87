//! One request of each sender, signed by somebody else than us.

use aldaba_signature::inbound::{Inspected, Inspector, Recipe, Refusal, Secret};

pub(crate) const NOW: i64 = 1_614_265_330;

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) sender: &'static str,
    pub(crate) recipe: Recipe,
    pub(crate) secret: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) now: i64,
    pub(crate) id: &'static str,
    pub(crate) event_type: Option<&'static str>,
}

impl Sample {
    pub(crate) fn inspector(&self) -> Inspector {
        self.inspector_with(self.secret)
    }

    pub(crate) fn inspector_with(&self, secret: &str) -> Inspector {
        let secret = Secret::parse_for(&self.recipe, secret).unwrap();
        Inspector::new(self.recipe.clone(), [secret]).unwrap()
    }

    pub(crate) fn inspect(&self) -> Result<Inspected, Refusal> {
        self.inspect_at(self.now)
    }

    pub(crate) fn inspect_at(&self, now: i64) -> Result<Inspected, Refusal> {
        self.inspector().inspect(self.headers.as_slice(), &self.body, now)
    }

    pub(crate) fn expected(&self) -> Inspected {
        Inspected { id: self.id.into(), event_type: self.event_type.map(Into::into) }
    }

    pub(crate) fn header(&mut self, name: &str) -> &mut String {
        &mut self.headers.iter_mut().find(|(other, _)| *other == name).expect("such a header").1
    }
}

fn sample(
    sender: &'static str,
    recipe: Recipe,
    secret: &'static str,
    headers: &[(&'static str, &str)],
    body: &str,
) -> Sample {
    let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let body = body.as_bytes().to_vec();
    Sample { sender, recipe, secret, headers, body, now: NOW, id: "", event_type: None }
}

pub(crate) fn samples() -> Vec<Sample> {
    let ours = r#"{"jobId": "job-7", "status": "completed"}"#;
    vec![
        // The vector of the Standard Webhooks libraries.
        Sample {
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
            ..sample(
                "standard",
                Recipe::standard(),
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                &[
                    ("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
                    ("webhook-timestamp", "1614265330"),
                    ("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
                ],
                r#"{"test": 2432232314}"#,
            )
        },
        // From Svix's documentation. Its secret has 18 bytes, fewer than Standard Webhooks asks for.
        Sample {
            id: "msg_loFOjxBNrRLzqYUf",
            now: 1_731_705_121,
            ..sample(
                "svix",
                Recipe::svix(),
                "whsec_plJ3nmyCDGBKInavdOK15jsl",
                &[
                    ("svix-id", "msg_loFOjxBNrRLzqYUf"),
                    ("svix-timestamp", "1731705121"),
                    ("svix-signature", "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0="),
                ],
                r#"{"event_type":"ping","data":{"success":true}}"#,
            )
        },
        Sample {
            id: "evt_1",
            event_type: Some("charge.succeeded"),
            ..sample(
                "stripe",
                Recipe::stripe(),
                "whsec_test_secret",
                &[(
                    "stripe-signature",
                    "t=1614265330,v1=d748bbb0c1b4e247b4d46d1315212be79ad615fb4fdebdd8d6b9908cf64da1ac,v0=6ffbb59b",
                )],
                r#"{"id": "evt_1", "type": "charge.succeeded"}"#,
            )
        },
        // From GitHub's documentation.
        Sample {
            id: "72d3162e-cc78-11e3-81ab-4c9367dc0958",
            event_type: Some("issues"),
            ..sample(
                "github",
                Recipe::github(),
                "It's a Secret to Everybody",
                &[
                    (
                        "x-hub-signature-256",
                        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
                    ),
                    ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
                    ("x-github-event", "issues"),
                ],
                "Hello, World!",
            )
        },
        Sample {
            id: "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043",
            event_type: Some("orders/create"),
            ..sample(
                "shopify",
                Recipe::shopify(),
                "hush",
                &[
                    ("x-shopify-hmac-sha256", "qBvrsZF7RfB1iS6BX6IHqJTp5L911P7intnPeTPsH0I="),
                    ("x-shopify-webhook-id", "b54557e4-bdd9-4b37-8a5f-bf7d70bcd043"),
                    ("x-shopify-topic", "orders/create"),
                ],
                r#"{"id":820982911946154508}"#,
            )
        },
        Sample {
            id: "Ev08MFMKH6",
            event_type: Some("app_mention"),
            ..sample(
                "slack",
                Recipe::slack(),
                "8f742231b10e8888abcd99yyyzzz85a5",
                &[
                    (
                        "x-slack-signature",
                        "v0=53ee656d051bda84c9dc02640427f93ab80967e8d0eb76e0f04bbd473746a852",
                    ),
                    ("x-slack-request-timestamp", "1614265330"),
                ],
                r#"{"type": "event_callback", "event_id": "Ev08MFMKH6", "event": {"type": "app_mention"}}"#,
            )
        },
        // Ours, as docs/profiles.md has them.
        Sample {
            id: "95913f3ba41da89506244cc8b36ac492b4a54996f3d42d8d6adf5e1528571be6",
            ..sample(
                "x-webhook",
                Recipe::x_webhook_signature(),
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                &[(
                    "x-webhook-signature",
                    "7b9a749597da4f85a130b1524342d01ff580fb41f2e170ace99c61b4e21f9678",
                )],
                ours,
            )
        },
        Sample {
            id: "msg_3M9KlX4MZz10D6NByhC8p0MEFnG",
            event_type: Some("job.done"),
            now: 1_794_757_495,
            ..sample(
                "branded",
                Recipe::branded("Zeltapay"),
                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                &[
                    ("zeltapay-event-id", "msg_3M9KlX4MZz10D6NByhC8p0MEFnG"),
                    ("zeltapay-event-type", "job.done"),
                    (
                        "zeltapay-signature",
                        "t=1794757495,v1=a64197b32d4397c7853db2e3ec96e20110e5ce9b75170e21cbbeac2581179594",
                    ),
                ],
                ours,
            )
        },
        Sample {
            id: "6e3b90cf795c0c61c07d979d7891dd18bf3b24718782fe6804483e1a3644e25d",
            event_type: Some("page"),
            ..sample(
                "meta",
                Recipe::meta(),
                "app secret",
                &[(
                    "x-hub-signature-256",
                    "sha256=7be158fc6771699c7393924626beba1f480af92ef5bf08b87ba51663794bf3b6",
                )],
                r#"{"object": "page", "entry": []}"#,
            )
        },
        Sample {
            id: "d2638d38321ace78825c113f32d556d85a685a62fe0668ff759572a33915acf5",
            event_type: Some("meeting.started"),
            ..sample(
                "zoom",
                Recipe::zoom(),
                "zoom secret",
                &[
                    ("x-zm-signature", "v0=f843632ed341e96c7bdbd91f14652d1cff81f1ce414cac20321f9e30d360e656"),
                    ("x-zm-request-timestamp", "1614265330"),
                ],
                r#"{"event": "meeting.started", "event_ts": 1614265329000}"#,
            )
        },
        Sample {
            id: "evt_9",
            event_type: Some("payment_intent.succeeded"),
            ..sample(
                "airwallex",
                Recipe::airwallex(),
                "air secret",
                &[
                    ("x-signature", "aa83e9ff46ea75b3dd8c2da5703f895e3f53ebf3c7df42ca2780791ff609a631"),
                    ("x-timestamp", "1614265330123"),
                ],
                r#"{"id": "evt_9", "name": "payment_intent.succeeded"}"#,
            )
        },
        Sample {
            id: "evt_5",
            event_type: Some("tracker.updated"),
            ..sample(
                "easypost",
                Recipe::easypost(),
                "easy secret",
                &[(
                    "x-hmac-signature",
                    "hmac-sha256-hex=285d00b86a250da97e897bc02fe38678e1b7606cfbfaf6349ce3b83294f77bda",
                )],
                r#"{"id": "evt_5", "description": "tracker.updated"}"#,
            )
        },
        Sample {
            id: "357d0bc206b915ed1a5a238538c1b4f282cd58d1729e967e9e41c32ca05595f1",
            event_type: Some("nodeCreated"),
            ..sample(
                "tailscale",
                Recipe::tailscale(),
                "tskey-webhook-xxxxx",
                &[(
                    "tailscale-webhook-signature",
                    "t=1614265330,v1=550ca779c83e75418bc13355c1c7befd63c007cd1356a279ce1381d30d23383d",
                )],
                r#"[{"type": "nodeCreated"}, {"type": "test"}]"#,
            )
        },
        Sample {
            id: "e3",
            event_type: Some("message.received"),
            ..sample(
                "telnyx",
                Recipe::telnyx(),
                "6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw=",
                &[
                    (
                        "telnyx-signature-ed25519",
                        "+vuZRcP1ixdfC1EJNnS4I9ZHhBLcrAtcVjH/kDMSr2j93UKfEWAy3bUo1E2dv3WgYD6ucO6/bUfzA8ZXDAHhCw==",
                    ),
                    ("telnyx-timestamp", "1614265330"),
                ],
                r#"{"data": {"id": "e3", "event_type": "message.received"}}"#,
            )
        },
    ]
}

pub(crate) fn sample_of(sender: &str) -> Sample {
    samples().into_iter().find(|sample| sample.sender == sender).expect("a sample")
}
