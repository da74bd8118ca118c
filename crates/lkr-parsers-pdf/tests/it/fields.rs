//! Values of form fields.

use crate::common::{Pdf, reads, set};

/// A field as an annotation of the page.
fn field(entries: &str) -> String {
    format!("<< /Type /Annot /Subtype /Widget /Rect [50 500 250 520] {entries} >>")
}

fn with_fields(fields: &[String]) -> Pdf {
    let annotations = format!("/Annots [{}]", fields.join(" "));
    Pdf::default().page(&set(700, "A form.")).entries("", &annotations, "")
}

#[test]
fn values_of_shown_fields_are_read() {
    let fields = [
        field("/FT /Tx /V (Ada Lovelace)"),
        // UTF-16, with a line break.
        field("/FT /Tx /F 4 /V <FEFF00DC0062000D0065007200740072006900650062>"),
        field("/FT /Ch /V (de) /Opt [[(de) (Germany)] [(fr) (France)]]"),
        field("/Parent << >> /FT /Ch /V [(one) (two)]"),
        // White on a coloured field, and a size that adapts to the field.
        field("/FT /Tx /DA (/R 0 Tf 1 g) /MK << /BG [0 0 1] >> /V (seven)"),
    ];
    reads(&with_fields(&fields), "A form. Ada Lovelace Üb ertrieb Germany one two seven", false);
}

#[test]
fn values_that_no_page_shows_are_not_read() {
    let fields = [
        field("/FT /Tx /F 2 /V (hidden)"),
        field("/FT /Tx /F 32 /V (unviewed)"),
        field("/FT /Tx /Ff 8192 /V (password)"),
        field("/FT /Btn /V /Yes"),
        field("/FT /Tx /DA (/R 10 Tf 1 1 1 rg) /V (white)"),
        field("/FT /Tx /DA (/R .1 Tf 0 g) /V (tiny)"),
        "<< /Type /Annot /Subtype /Widget /FT /Tx /Rect [50 500 50 500] /V (nowhere) >>".to_owned(),
        "<< /Type /Annot /Subtype /Widget /FT /Tx /Rect [900 900 990 990] /V (outside) >>".to_owned(),
        field("/FT /Tx"),
    ];
    reads(&with_fields(&fields), "A form.", false);
}

#[test]
fn fields_above_pass_on_their_entries() {
    let pdf = with_fields(&[field("/Parent 6 0 R")])
        .object("<< /FT /Tx /Parent 7 0 R >>")
        .object("<< /V (above) >>");
    reads(&pdf, "A form. above", false);
    let endless = with_fields(&[field("/Parent 6 0 R")]).object("<< /FT /Tx /Parent 6 0 R >>");
    reads(&endless, "A form.", false);
}
