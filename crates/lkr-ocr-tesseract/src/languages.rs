//! Language codes and tesseract's names of languages.

/// ISO 639-1 codes with the names of tesseract's data files, from the list of languages in its documentation.
const NAMES: &str = "af afr|am amh|ar ara|as asm|az aze|be bel|bg bul|bn ben|bo bod|br bre|bs bos|ca cat|cs ces|\
    cy cym|da dan|de deu|dv div|dz dzo|el ell|en eng|eo epo|es spa|et est|eu eus|fa fas|fi fin|fo fao|fr fra|\
    fy fry|ga gle|gd gla|gl glg|gu guj|he heb|hi hin|hr hrv|ht hat|hu hun|hy hye|id ind|is isl|it ita|iu iku|\
    ja jpn|jv jav|ka kat|kk kaz|km khm|kn kan|ko kor|ku kmr|ky kir|la lat|lb ltz|lo lao|lt lit|lv lav|mi mri|\
    mk mkd|ml mal|mn mon|mr mar|ms msa|mt mlt|my mya|nb nor|ne nep|nl nld|nn nor|no nor|oc oci|or ori|pa pan|\
    pl pol|ps pus|pt por|qu que|ro ron|ru rus|sa san|sd snd|si sin|sk slk|sl slv|sq sqi|sr srp|su sun|sv swe|\
    sw swa|ta tam|te tel|tg tgk|th tha|ti tir|to ton|tr tur|tt tat|ug uig|uk ukr|ur urd|uz uzb|vi vie|yi yid|\
    yo yor|zh chi_sim chi_tra";

/// The codes of the languages with at least one data file in `installed`.
pub(crate) fn supported_codes(installed: &[String]) -> Vec<&'static str> {
    let rows = NAMES.split('|').map(str::split_whitespace);
    let supported = rows.filter_map(|mut words| {
        let code = words.next()?;
        words.any(|name| installed.iter().any(|known| known == name)).then_some(code)
    });
    supported.collect()
}

/// The names of the data files of a language; none if tesseract does not support it.
pub(crate) fn names(code: &str) -> impl Iterator<Item = &'static str> {
    let row = NAMES.split('|').map(str::split_whitespace).find_map(move |mut words| {
        let is_match = words.next() == Some(code);
        is_match.then_some(words)
    });
    row.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_code_maps_to_its_data_files() {
        assert_eq!(names("de").collect::<Vec<_>>(), ["deu"]);
        assert_eq!(names("zh").collect::<Vec<_>>(), ["chi_sim", "chi_tra"]);
        assert_eq!(names("deu").count() + names("").count() + names("xx").count(), 0);
    }

    #[test]
    fn language_is_supported_if_one_of_its_data_files_is_installed() {
        let installed = ["chi_tra", "eng", "nor", "osd"].map(str::to_owned);
        assert_eq!(supported_codes(&installed), ["en", "nb", "nn", "no", "zh"]);
        assert!(supported_codes(&[]).is_empty());
    }

    #[test]
    fn every_row_has_a_code_and_names_in_alphabetical_order() {
        let codes: Vec<&str> = NAMES.split('|').filter_map(|row| row.split_whitespace().next()).collect();
        assert!(codes.is_sorted_by(|one, next| one < next), "sorted and unique");
        assert!(codes.iter().all(|code| code.len() == 2 && names(code).count() > 0));
    }
}
