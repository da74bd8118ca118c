//! Texts with the encodings that they are written in.

/// A language, a text, and encodings of it.
pub(crate) type Sample = (&'static str, &'static str, &'static [&'static str]);

pub(crate) const SAMPLES: &[Sample] = &[
    ("Korean", KOREAN, &["EUC-KR", "ISO-2022-KR", "Johab"]),
    ("Russian", RUSSIAN, &["windows-1251", "KOI8-R", "IBM866", "ISO-8859-5", "x-mac-cyrillic", "IBM855"]),
    (
        "Russian letter",
        LETTER,
        &["windows-1251", "KOI8-R", "IBM866", "ISO-8859-5", "x-mac-cyrillic", "IBM855"],
    ),
    ("Ukrainian", UKRAINIAN, &["windows-1251", "KOI8-U", "x-mac-cyrillic", "IBM855"]),
    ("Bulgarian", BULGARIAN, &["windows-1251", "IBM866", "ISO-8859-5", "x-mac-cyrillic", "IBM855"]),
    ("Serbian", SERBIAN, &["windows-1251", "ISO-8859-5", "x-mac-cyrillic", "IBM855"]),
    ("Japanese", JAPANESE, &["Shift_JIS", "EUC-JP", "ISO-2022-JP"]),
    ("Simplified Chinese", SIMPLIFIED, &["GBK", "gb18030"]),
    ("Traditional Chinese", TRADITIONAL, &["Big5"]),
    ("French", FRENCH, &["windows-1252"]),
    ("German", GERMAN, &["windows-1252"]),
    ("Spanish", SPANISH, &["windows-1252"]),
    ("Polish", POLISH, &["windows-1250", "ISO-8859-2"]),
    ("Czech", CZECH, &["windows-1250", "ISO-8859-2"]),
    ("Hungarian", HUNGARIAN, &["windows-1250", "ISO-8859-2"]),
    ("Turkish", TURKISH, &["windows-1254"]),
    ("Greek", GREEK, &["windows-1253", "ISO-8859-7"]),
    ("Hebrew", HEBREW, &["windows-1255"]),
    ("Arabic", ARABIC, &["windows-1256", "ISO-8859-6"]),
    ("Lithuanian", LITHUANIAN, &["windows-1257"]),
    ("Vietnamese", VIETNAMESE, &["windows-1258"]),
    ("Thai", THAI, &["windows-874"]),
];

const KOREAN: &str = "우리는 어제 저녁에 바닷가를 천천히 걸었다. 물은 차가웠지만 하늘은 맑고 바람도 거의 없었다. 등대지기는 이 등대가 백 년 전에 세워졌다고 말했다. 그는 매일 기록을 남기고 배가 지나갈 때마다 시간을 적는다.";

const RUSSIAN: &str = "Все маяки на этом берегу имеют номера, и номера идут с востока на запад. Первые списки печатали для капитанов, которые хотели найти огонь по тому порядку, в котором они его пройдут. Когда маяк разрушали, его номер не отдавали другому, потому что старые карты тогда показывали бы не ту башню.";

const LETTER: &str = "Дорогая Мария! Спасибо за твоё письмо от 12 мая. Мы уже вернулись в Ярославль, и я сразу начал работать. Андрей просит передать, что книгу он нашёл. Пиши чаще! Твой Юрий";

const UKRAINIAN: &str = "Кожен маяк на цьому березі має свій номер, і номери йдуть зі сходу на захід. Перші списки друкували для капітанів, які хотіли знайти вогонь за порядком, у якому вони його пройдуть. Їхні книги ще зберігаються в архіві міста.";

const BULGARIAN: &str = "Всеки фар на този бряг има номер и номерата следват брега от изток на запад. Първите списъци са били печатани за капитаните, които са искали да намерят светлината по реда, в който ще минат покрай нея. Днес те се пазят в музея на града.";

const SERBIAN: &str = "Сваки светионик на овој обали има свој број, а бројеви иду од истока према западу. Први спискови су штампани за капетане који су желели да пронађу светло по реду којим ће поред њега проћи. Данас се чувају у градском музеју.";

const JAPANESE: &str = "この海岸の灯台にはすべて番号があり、番号は東から西へと続いている。最初の一覧は船長のために印刷された。灯台が取り壊されても、その番号は別の灯台には使われなかった。古い地図が違う塔を示すことになるからである。";

const SIMPLIFIED: &str = "这个海岸上的每一座灯塔都有一个号码,号码从东到西排列。最早的名单是为船长们印刷的,他们想按照经过的顺序找到灯光。灯塔被拆除以后,它的号码不会给另一座灯塔,因为旧的地图会因此出错。";

const TRADITIONAL: &str = "這個海岸上的每一座燈塔都有一個號碼,號碼從東到西排列。最早的名單是為船長們印刷的,他們想按照經過的順序找到燈光。燈塔被拆除以後,它的號碼不會給另一座燈塔,因為舊的地圖會因此出錯。";

const FRENCH: &str = "Chaque phare de cette côte possède un numéro, et les numéros suivent le rivage de l’est à l’ouest. Les premières listes étaient imprimées pour les capitaines, qui cherchaient à reconnaître un feu d’après l’ordre où ils le voyaient. Quand un phare était détruit, son numéro n’était pas réutilisé.";

const GERMAN: &str = "Jeder Leuchtturm an dieser Küste trägt eine Nummer, und die Nummern führen von Osten nach Westen. Die ersten Listen waren für Kapitäne gedruckt, die ein Feuer über die Reihenfolge finden wollten. Wurde ein Turm zerstört, so blieb seine Nummer frei, weil sonst ältere Karten den falschen Turm genannt hätten.";

const SPANISH: &str = "Cada faro de esta costa tiene un número, y los números siguen la orilla de este a oeste. Las primeras listas se imprimían para los capitanes, que querían encontrar una luz según el orden en que pasarían. ¿Por qué? Cuando un faro caía, su número no se daba a otro, así que también quedó un hueco año tras año.";

const POLISH: &str = "Każda latarnia na tym wybrzeżu ma swój numer, a numery biegną ze wschodu na zachód. Pierwsze spisy drukowano dla kapitanów, którzy chcieli znaleźć światło według kolejności. Gdy latarnię zburzono, jej numeru już nie używano, ponieważ stare mapy wskazywałyby wtedy niewłaściwą wieżę.";

const CZECH: &str = "Každý maják na tomto pobřeží má své číslo a čísla jdou od východu k západu. První seznamy se tiskly pro kapitány, kteří chtěli najít světlo podle pořadí, v jakém je minou. Když byl maják zbořen, jeho číslo už nikdo nedostal, protože staré mapy by pak ukazovaly na špatnou věž.";

const HUNGARIAN: &str = "Ezen a parton minden világítótoronynak van száma, és a számok keletről nyugatra haladnak. Az első jegyzékeket a kapitányok számára nyomtatták, akik a sorrend szerint akarták megtalálni a fényt. Ha egy tornyot lebontottak, a számát többé senki sem kapta meg, mert a régi térképek így tévedtek volna. Hűvös őszi idő volt.";

const TURKISH: &str = "Bu kıyıdaki her deniz fenerinin bir numarası vardır ve numaralar doğudan batıya doğru gider. İlk listeler, ışığı geçiş sırasına göre bulmak isteyen kaptanlar için basılmıştı. Bir fener yıkıldığında numarası başka bir fenere verilmedi, çünkü eski haritalar yanlış kuleyi gösterecekti.";

const GREEK: &str = "Κάθε φάρος σε αυτή την ακτή έχει έναν αριθμό και οι αριθμοί πηγαίνουν από την ανατολή προς τη δύση. Οι πρώτοι κατάλογοι τυπώθηκαν για τους καπετάνιους, που ήθελαν να βρουν ένα φως από τη σειρά με την οποία θα το περνούσαν.";

const HEBREW: &str = "לכל מגדלור בחוף הזה יש מספר, והמספרים הולכים ממזרח למערב. הרשימות הראשונות הודפסו עבור קברניטים שרצו למצוא אור לפי הסדר שבו יעברו על פניו. כאשר מגדלור נהרס, המספר שלו לא ניתן לאחר.";

const ARABIC: &str = "لكل منارة على هذا الساحل رقم، وتسير الأرقام من الشرق إلى الغرب. طبعت القوائم الأولى للقباطنة الذين أرادوا أن يجدوا الضوء حسب ترتيب مرورهم به. وعندما هدمت منارة لم يعط رقمها لغيرها لأن الخرائط القديمة كانت ستشير إلى برج آخر.";

const LITHUANIAN: &str = "Kiekvienas švyturys šioje pakrantėje turi numerį, o numeriai eina iš rytų į vakarus. Pirmieji sąrašai buvo spausdinami kapitonams, kurie norėjo rasti šviesą pagal eilės tvarką. Kai švyturys būdavo nugriautas, jo numeris nebūdavo perduodamas kitam, nes seni žemėlapiai tada rodytų ne tą bokštą.";

// Tones are combining characters in windows-1258.
const VIETNAMESE: &str = "Mô\u{323}t ngươ\u{300}i giư\u{303} đe\u{300}n biê\u{309}n sô\u{301}ng ơ\u{309} đây. Ông đê\u{301}m ca\u{301}c con ta\u{300}u đi qua va\u{300} ghi la\u{323}i trong mô\u{323}t cuô\u{301}n sô\u{309}. Đêm na\u{300}o ông cu\u{303}ng thă\u{301}p đe\u{300}n, va\u{300} mă\u{323}t biê\u{309}n thi\u{300} râ\u{301}t yên lă\u{323}ng. Khi trơ\u{300}i sa\u{301}ng, ông tă\u{301}t đe\u{300}n rô\u{300}i đi ngu\u{309}.";

const THAI: &str = "ประภาคารทุกแห่งบนชายฝั่งนี้มีหมายเลข และหมายเลขเรียงจากตะวันออกไปตะวันตก รายชื่อแรกพิมพ์ขึ้นสำหรับกัปตันเรือ ผู้ที่ต้องการหาแสงไฟตามลำดับที่จะแล่นผ่าน";
