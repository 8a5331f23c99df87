use super::{MAX_ATTEMPTS, MAX_DELAY, MAX_TIMEOUT};
use std::time::Duration;

/// Settings that change numbers of the built-in policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overrides {
    /// `RETRY_STOP_DATE_AFTER_MINUTES`, for `persistent`.
    pub stop_after: Duration,
    /// `WEBHOOK_TIMEOUT_MS`, for `job-status`.
    pub job_timeout: Duration,
    /// `WEBHOOK_MAX_ATTEMPTS`, for `job-status`.
    pub job_attempts: u32,
    /// `WEBHOOK_BASE_DELAY_MS`, for `job-status`: the delay after the first failure. Each one after it is twice as long.
    pub job_base_delay: Duration,
    /// `WEBHOOK_MAX_DELAY_MS`, for `job-status`: the longest delay.
    pub job_max_delay: Duration,
    /// `WEBHOOK_RETRY_INTERVAL_MS`: how often the store is searched for due deliveries that memory does not
    /// know of. Retries themselves are on time.
    pub sweep_interval: Duration,
}

const BASE_DELAY_NAME: &str = "WEBHOOK_BASE_DELAY_MS";
const MAX_DELAY_NAME: &str = "WEBHOOK_MAX_DELAY_MS";

impl Default for Overrides {
    fn default() -> Self {
        Self {
            stop_after: Duration::from_secs(10_080 * 60),
            job_timeout: Duration::from_secs(10),
            job_attempts: 3,
            job_base_delay: Duration::from_secs(1),
            job_max_delay: Duration::from_secs(300),
            sweep_interval: Duration::from_secs(30),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name}={value}: expected a whole number from {least} to {most}{why}")]
pub struct OverrideError {
    pub name: &'static str,
    pub value: String,
    pub least: u64,
    pub most: u64,
    /// The other setting that narrows the range; empty: none.
    pub why: &'static str,
}

impl Overrides {
    /// Reads the six variables with `lookup`; a missing one keeps its default.
    pub fn read(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, OverrideError> {
        let number = |name: &'static str, most: u64| match lookup(name) {
            None => Ok(None),
            Some(value) => match value.trim().parse::<u64>() {
                Ok(number) if (1..=most).contains(&number) => Ok(Some(number)),
                _ => Err(OverrideError { name, value, least: 1, most, why: "" }),
            },
        };
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let mut overrides = Self::default();
        if let Some(minutes) = number("RETRY_STOP_DATE_AFTER_MINUTES", MAX_DELAY.as_secs() / 60)? {
            overrides.stop_after = Duration::from_secs(minutes * 60);
        }
        if let Some(timeout) = number("WEBHOOK_TIMEOUT_MS", millis(MAX_TIMEOUT))? {
            overrides.job_timeout = Duration::from_millis(timeout);
        }
        if let Some(attempts) = number("WEBHOOK_MAX_ATTEMPTS", u64::from(MAX_ATTEMPTS))? {
            overrides.job_attempts = u32::try_from(attempts).unwrap_or(MAX_ATTEMPTS);
        }
        let longest = millis(MAX_DELAY);
        let base = number(BASE_DELAY_NAME, longest)?;
        let cap = number(MAX_DELAY_NAME, longest)?;
        overrides.job_base_delay = base.map_or(overrides.job_base_delay, Duration::from_millis);
        overrides.job_max_delay = cap.map_or(overrides.job_max_delay, Duration::from_millis);
        let (least, most) = (millis(overrides.job_base_delay), millis(overrides.job_max_delay));
        match (base, cap) {
            _ if least <= most => {}
            (_, Some(cap)) => {
                let why = " (it must not be below WEBHOOK_BASE_DELAY_MS)";
                let value = cap.to_string();
                return Err(OverrideError { name: MAX_DELAY_NAME, value, least, most: longest, why });
            }
            (_, None) => {
                let why = " (it must not be above WEBHOOK_MAX_DELAY_MS; set that as well)";
                let value = least.to_string();
                return Err(OverrideError { name: BASE_DELAY_NAME, value, least: 1, most, why });
            }
        }
        if let Some(interval) = number("WEBHOOK_RETRY_INTERVAL_MS", millis(MAX_DELAY))? {
            overrides.sweep_interval = Duration::from_millis(interval);
        }
        Ok(overrides)
    }
}
