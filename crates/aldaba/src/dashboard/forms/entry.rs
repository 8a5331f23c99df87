//! One field of a form: its label, what it expects, what was entered, and what is wrong with it.

use crate::dashboard::texts::{Format, Tongue, texts};
use aldaba_engine::escaped;

/// With what the texts of all languages need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldFault {
    Missing,
    TooLong {
        max_bytes: usize,
    },
    NotANumber {
        least: u64,
        most: u64,
    },
    /// The hint says what is expected.
    NotAsExpected,
    /// Something else has this name.
    Taken,
    /// It names what is not there.
    Unknown,
}

texts! {
    FormTexts {
        fault(fault: FieldFault) => match fault {
            FieldFault::Missing => "This field is needed.".to_owned(),
            FieldFault::TooLong { max_bytes } => {
                format!("This is too long: it may have {} bytes.", Format(Tongue::English).count(max_bytes as u64))
            }
            FieldFault::NotANumber { least, most } => format!("This must be a whole number from {least} to {most}."),
            FieldFault::NotAsExpected => "This cannot be used; see what is expected below.".to_owned(),
            FieldFault::Taken => "Something else has this name. Choose another one.".to_owned(),
            FieldFault::Unknown => "There is no such thing.".to_owned(),
        }, match fault {
            FieldFault::Missing => "Este campo es necesario.".to_owned(),
            FieldFault::TooLong { max_bytes } => {
                format!("Es demasiado largo: puede tener {} bytes.", Format(Tongue::Spanish).count(max_bytes as u64))
            }
            FieldFault::NotANumber { least, most } => format!("Debe ser un número entero de {least} a {most}."),
            FieldFault::NotAsExpected => "No se puede usar; abajo se dice qué se espera.".to_owned(),
            FieldFault::Taken => "Otra cosa tiene ese nombre. Elija otro.".to_owned(),
            FieldFault::Unknown => "No existe.".to_owned(),
        };
        stale() => "Somebody has changed it since you opened this form. What is stored now is shown beside each field that differs. Save again to replace it with yours.",
            "Alguien lo ha cambiado desde que abrió este formulario. Junto a cada campo distinto se ve lo que hay guardado ahora. Guarde otra vez para sustituirlo por lo suyo.";
        stored_now() => "Stored now:", "Guardado ahora:";
        correct_the_fields() => "Nothing was saved. Please correct the marked fields.",
            "No se ha guardado nada. Corrija los campos marcados.";
        save() => "Save", "Guardar";
        create() => "Create", "Crear";
        cancel() => "Cancel", "Cancelar";
        optional() => "optional", "opcional";
    }
}

#[derive(Clone, Debug)]
enum Input {
    Line(&'static str),
    Lines,
    Choice(Vec<String>),
}

/// A field as it is shown.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    name: &'static str,
    label: String,
    hint: String,
    value: String,
    /// What is stored, where that differs from what was entered.
    stored: Option<String>,
    fault: Option<FieldFault>,
    is_required: bool,
    input: Input,
}

impl Entry {
    pub(crate) fn new(name: &'static str, label: String, hint: String) -> Self {
        let input = Input::Line("text");
        Self { name, label, hint, value: String::new(), stored: None, fault: None, is_required: false, input }
    }

    pub(crate) fn required(self) -> Self {
        Self { is_required: true, ..self }
    }

    /// Of a kind that browsers know, such as `url`.
    pub(crate) fn kind(self, kind: &'static str) -> Self {
        Self { input: Input::Line(kind), ..self }
    }

    pub(crate) fn lines(self) -> Self {
        Self { input: Input::Lines, ..self }
    }

    pub(crate) fn choice(self, choices: Vec<String>) -> Self {
        Self { input: Input::Choice(choices), ..self }
    }

    pub(crate) fn value(self, value: impl Into<String>) -> Self {
        Self { value: value.into(), ..self }
    }

    /// What was entered; what is stored is shown beside it.
    pub(crate) fn entered(self, entered: &str, stored: Option<String>) -> Self {
        let stored = stored.filter(|stored| stored.trim() != entered.replace("\r\n", "\n").trim());
        Self { value: entered.to_owned(), stored, ..self }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn fault(self, fault: Option<FieldFault>) -> Self {
        Self { fault, ..self }
    }

    pub(crate) fn markup(&self, t: &dyn FormTexts) -> String {
        let (name, label, value) = (self.name, escaped(&self.label), escaped(&self.value));
        let optional = match self.is_required {
            true => String::new(),
            false => format!(" <span class=\"muted\">({})</span>", escaped(&t.optional())),
        };
        let mut about = vec![format!("{name}-hint")];
        let fault = self.fault.map(|fault| {
            about.insert(0, format!("{name}-fault"));
            format!(
                "<p class=\"field-fault\" id=\"{name}-fault\"><span aria-hidden=\"true\">✕</span> {}</p>",
                escaped(&t.fault(fault))
            )
        });
        let stored = self.stored.as_ref().map(|stored| {
            format!(
                "<p class=\"hint\">{} <code>{}</code></p>",
                escaped(&t.stored_now()),
                super::super::components::visible(stored)
            )
        });
        let invalid = if self.fault.is_some() { " aria-invalid=\"true\"" } else { "" };
        let required = if self.is_required { " required" } else { "" };
        let attributes = format!(
            "id=\"{name}\" name=\"{name}\" aria-describedby=\"{}\"{invalid}{required}",
            about.join(" ")
        );
        let input = match &self.input {
            Input::Line(kind) => {
                format!("<input {attributes} type=\"{kind}\" value=\"{value}\" autocomplete=\"off\">")
            }
            Input::Lines => format!("<textarea {attributes} rows=\"4\">\n{value}</textarea>"),
            Input::Choice(choices) => {
                let option = |choice: &String| {
                    let selected = if *choice == self.value { " selected" } else { "" };
                    format!("<option{selected}>{}</option>", escaped(choice))
                };
                format!("<select {attributes}>{}</select>", choices.iter().map(option).collect::<String>())
            }
        };
        format!(
            "<div class=\"field\"><label for=\"{name}\">{label}{optional}</label>{input}{}<p class=\"hint\" id=\"{name}-hint\">{}</p>{}</div>",
            fault.unwrap_or_default(),
            escaped(&self.hint),
            stored.unwrap_or_default()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_returns_filled_in_with_its_fault_and_what_is_stored() {
        let entry = Entry::new("url", "URL".into(), "An https URL".into())
            .required()
            .entered("<x>", Some("https://example.com/".into()))
            .fault(Some(FieldFault::NotAsExpected));
        let html = entry.markup(<dyn FormTexts>::of(Tongue::English));
        assert!(html.contains("value=\"&lt;x&gt;\"") && html.contains("aria-invalid=\"true\""), "{html}");
        assert!(
            html.contains("aria-describedby=\"url-fault url-hint\"") && html.contains("Stored now:"),
            "{html}"
        );
        let same = Entry::new("a", "A".into(), String::new()).entered("x\r\ny", Some("x\ny".into()));
        assert!(same.stored.is_none());
    }
}
