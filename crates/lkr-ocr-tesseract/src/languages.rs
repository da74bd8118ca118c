//! What tesseract calls languages.

/// ISO 639-1 codes and the names of tesseract's data for them, as its documentation of language codes lists them.
const NAMES: &str = "af afr|am amh|ar ara|as asm|az aze|be bel|bg bul|bn ben|bo bod|br bre|bs bos|ca cat|cs ces|\
    cy cym|da dan|de deu|dv div|dz dzo|el ell|en eng|eo epo|es spa|et est|eu eus|fa fas|fi fin|fo fao|fr fra|\
    fy fry|ga gle|gd gla|gl glg|gu guj|he heb|hi hin|hr hrv|ht hat|hu hun|hy hye|id ind|is isl|it ita|iu iku|\
    ja jpn|jv jav|ka kat|kk kaz|km khm|kn kan|ko kor|ku kmr|ky kir|la lat|lb ltz|lo lao|lt lit|lv lav|mi mri|\
    mk mkd|ml mal|mn mon|mr mar|ms msa|mt mlt|my mya|nb nor|ne nep|nl nld|nn nor|no nor|oc oci|or ori|pa pan|\
    pl pol|ps pus|pt por|qu que|ro ron|ru rus|sa san|sd snd|si sin|sk slk|sl slv|sq sqi|sr srp|su sun|sv swe|\
    sw swa|ta tam|te tel|tg tgk|th tha|ti tir|to ton|tr tur|tt tat|ug uig|uk ukr|ur urd|uz uzb|vi vie|yi yid|\
    yo yor|zh chi_sim chi_tra";

/// The codes of the languages of which some data is among `installed`.
pub(crate) fn codes(installed: &[String]) -> Vec<&'static str> {
    let rows = NAMES.split('|').map(str::split_whitespace);
    let there = rows.filter_map(|mut words| {
        let code = words.next()?;
        words.any(|name| installed.iter().any(|known| known == name)).then_some(code)
    });
    there.collect()
}

/// The names of the data for a language; none where tesseract has none.
pub(crate) fn names(code: &str) -> impl Iterator<Item = &'static str> {
    let named = NAMES.split('|').map(str::split_whitespace).find_map(move |mut words| {
        let known = words.next() == Some(code);
        known.then_some(words)
    });
    named.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_languages() {
        assert_eq!(names("de").collect::<Vec<_>>(), ["deu"]);
        assert_eq!(names("zh").collect::<Vec<_>>(), ["chi_sim", "chi_tra"]);
        assert_eq!(names("deu").count() + names("").count() + names("xx").count(), 0);
    }

    #[test]
    fn languages_of_what_is_installed() {
        let installed = ["chi_tra", "eng", "nor", "osd"].map(str::to_owned);
        assert_eq!(codes(&installed), ["en", "nb", "nn", "no", "zh"]);
        assert!(codes(&[]).is_empty());
    }

    #[test]
    fn every_row_is_a_code_and_its_names() {
        let codes: Vec<&str> = NAMES.split('|').filter_map(|row| row.split_whitespace().next()).collect();
        assert!(codes.is_sorted_by(|one, next| one < next), "in order, each once");
        assert!(codes.iter().all(|code| code.len() == 2 && names(code).count() > 0));
    }
}
