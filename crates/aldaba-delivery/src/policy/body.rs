//! Policies as bodies of the API. They are stored, and written in files, in the same form.

mod read;
mod write;

use super::{Policy, PolicyError, PolicySpec};
use aldaba_api::NewPolicy;
use aldaba_api::read::{Parsed, Problem, Problems, UnknownFields, parse};
use serde_json::Value;

impl Policy {
    /// Parses a policy. Missing fields are as in `standard`, except that a list of delays also sets the number
    /// of attempts. All fields that cannot be read are reported at once.
    pub fn from_json(value: &Value) -> Result<Self, Vec<PolicyError>> {
        let body = parse::<NewPolicy>(value.to_string().as_bytes(), false, UnknownFields::Refuse)
            .and_then(Parsed::finish)
            .map_err(PolicyError::of_problems)?;
        Self::from_body(body).map_err(|error| vec![error])
    }

    /// A policy of a body that has been read.
    pub fn from_body(body: NewPolicy) -> Result<Self, PolicyError> {
        Self::new(PolicySpec::from_body(body)?)
    }

    /// Checks what requests may not have, though former versions accepted it and may have stored it.
    pub fn check_given(&self) -> Result<(), PolicyError> {
        super::validate::check_given(self)
    }

    /// Parses a policy of a request.
    pub fn from_request_json(value: &Value) -> Result<Self, Vec<PolicyError>> {
        let policy = Self::from_json(value)?;
        policy.check_given().map_err(|error| vec![error])?;
        Ok(policy)
    }
}

impl PolicySpec {
    /// The body of a request that makes this policy.
    pub fn to_new(&self) -> NewPolicy {
        NewPolicy { name: self.name.clone(), ..self.to_body().into() }
    }

    pub fn to_json(&self) -> Value {
        serde_json::to_value(self.to_new()).unwrap_or_default()
    }
}

impl PolicyError {
    fn of_problems(problems: Problems) -> Vec<Self> {
        problems.into_list().into_iter().map(Self::of_problem).collect()
    }

    /// The place of a list's item is `field[0]`.
    fn of_problem(problem: Problem) -> Self {
        let mut field = String::new();
        for part in &problem.loc[1..] {
            if !field.is_empty() && !part.starts_with('[') {
                field.push('.');
            }
            field.push_str(part);
        }
        let field = if field.is_empty() { "policy".to_owned() } else { field };
        Self { field: field.into(), why: problem.msg }
    }
}

#[cfg(test)]
mod tests;
