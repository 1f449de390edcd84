"""The words of the first page and of the headings, in three languages: one table each, with the same keys.

The name of a unit is the owner's, in whatever language it is; sentences hold it between quotation marks where a
language would bend it. Names in braces are filled in.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, get_args

from quorate.report.html import Markup, element

Language: TypeAlias = Literal["en", "de", "fr"]
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)
#: What the public report is called in each.
REPORT_FILES: Final[Mapping[Language, str]] = MappingProxyType(
    {"en": "report.html", "de": "report.de.html", "fr": "report.fr.html"}
)

_ENGLISH = {
    "eyebrow": "quorate · privacy report",
    "title": "privacy report",
    "rest": "",
    # headings
    "summary": "In one page",
    "guarantee": "Privacy guarantee",
    "composition": "Unit of privacy, composition",
    "mechanisms": "Mechanisms",
    "implementation": "Implementation",
    "utility": "Utility",
    "audit": "Audit",
    "sensitivity": "Sensitivity of the choice",
    "collection": "Data collection",
    "provenance": "Trust model, provenance",
    "internal": "For the owner alone",
    "not protected": "What it does not protect",
    "best attack": "The best attack on this run",
    "found": "How “{name}” is found",
    "probabilities": "How far probabilities mean what they say",
    "importances": "Which columns the model looks at",
    "settings": "Why these settings",
    # who is protected
    "who": "Who is protected",
    "who unit": "Every {unit}, with all rows of that {unit} together.",
    "who record": "Every record: one row of the table. Where a person has several rows, each row is protected by "
    "itself, and the person less.",
    "who label": "The label of every row. Which rows there are, and all that they hold beside the label, is not "
    "protected.",
    "who labels": "All labels of every {unit}. Which rows there are, and all that they hold beside the label, is not "
    "protected.",
    "who stated": "Whom the owner of the data states: “{stated}”.",
    "owner states": "This holds if the data of one {unit} went to exactly one teacher, as the owner states.",
    # what leaves
    "leaves": "What leaves",
    "leaves model": "a model: {model}",
    "leaves labels": "noisy labels of {n} public rows",
    "leaves pool": "noisy counts of the columns, and rows drawn from them, which are no people",
    "leaves later": "up to {n} answers to later questions, already counted in the figures below",
    "leaves report": "this report, with settings and figures that are public",
    "stays": "The private rows stay where they are, and so does whatever was fitted on them without noise.",
    # what an attacker could learn
    "learn": "What an attacker can learn at most",
    "learn add": "Somebody sees all that leaves, knows everything else, and must say whether one given {unit} is in "
    "the private data, which is as likely as not. On average, such an attacker is right at most {right} times in "
    "1,000. Tossing a coin is right 500 times.",
    "learn replace": "Somebody sees all that leaves, knows everything else, and must say which of two tables is the "
    "private one; they are equally likely, and differ in one {unit}. On average, such an attacker is right at most "
    "{right} times in 1,000. Tossing a coin is right 500 times.",
    "learn labels": "Somebody sees all that leaves, knows everything else, and must say which of two equally likely "
    "versions of the labels of one {unit} is true. On average, such an attacker is right at most {right} times in "
    "1,000. Tossing a coin is right 500 times.",
    "learn stated": "Somebody sees all that leaves, knows everything else, and must say which of two equally likely "
    "data sets, which are neighbours as the owner states, is the private one. On average, such an attacker is right "
    "at most {right} times in 1,000. Tossing a coin is right 500 times.",
    "learn nothing": "Nothing is promised: the noise of this run came from a given seed, and whoever has the seed can "
    "take the noise away again.",
    "also replace": "Asked which of two given versions of the data of that {unit} is the true one: at most {right} "
    "times in 1,000.",
    "also add": "Asked whether that {unit} is in the private data at all: at most {right} times in 1,000.",
    "seeded earlier": "What an earlier run on the same ledger published with seeded noise is not covered.",
    "dots coin": "{n} right by tossing a coin",
    "dots more": "{n} more by looking at all that leaves, at most",
    "dots wrong": "{n} still wrong, at least",
    "tick everyone": "It holds for every {unit}, however unusual.",
    "tick method": "It holds whatever an attacker knows already, and by whatever method.",
    "tick later": "It holds for ever: copying and analysing what left cannot weaken it.",
    "tick together": "It covers all that leaves together.",
    "tick ledger": "It covers all that leaves together, and whatever the same ledger paid for before.",
    "not": "It does not say that nothing can be concluded about a person. What is true of many is learnt by design, "
    "and may be said of anybody.",
    "caveats": "Limits of the guarantee: {n}; see “{heading}”, “What it does not protect”.",
    "checks": "Checks that failed: {n}. The guarantee may not hold; see “{heading}”.",
    "attacked": "An audit contradicts the guarantee: it does not hold. See “{heading}”.",
    "figures": "In figures: ε ≤ {epsilon}, δ ≤ {delta}.",
    # of what use it is
    "use": "Is the model of use?",
    "lost": "Part of what was charged was lost when a process ended, and is never drawn again; see “{heading}”.",
    "lost counts": "The noisy counts of the columns were charged, and lost when a process ended. The model was made "
    "without them, and may be of no use; see “{heading}”.",
    "use accuracy": "It labels {accuracy} of {n} public rows rightly (95 % interval: {low} to {high}).",
    "use baseline": "Always saying “{name}” would label {share} rightly.",
    "use no better": "The model is no better than that.",
    "use not clearly better": "The model is not clearly better than that.",
    "use balanced": "Accuracy averaged over the {n} classes: {balanced}. Worst class: “{name}”, {recall}.",
    "use number": "On {n} public rows its predictions have R² {r}; they are off by {error} on average.",
    "use unknown": "There are no labelled public rows to measure it on.",
    "recall": "Recall",
    "recall of": "{share}: {right} of {n} rows that are “{name}” are found, {missed} are missed",
    "precision": "Precision",
    "precision of": "{share} of the rows that the model calls “{name}” are so",
    "precision none": "the model calls no row “{name}”",
    "false alarms": "False alarms",
    "false alarms of": "{share} of the other rows are called “{name}” wrongly",
    "auc": "AUC",
    "auc of": "{area} (by chance 0.5, at best 1): how well rows are ordered by the probability of “{name}”",
    "sign": "Approved for release",
    "sign lines": "Name|Date|Signature",
}  # fmt: skip

_GERMAN = {
    "eyebrow": "quorate · Datenschutzbericht",
    "title": "Datenschutzbericht",
    "rest": "Die folgenden Seiten sind auf Englisch.",
    "summary": "Auf einer Seite",
    "guarantee": "Datenschutz-Garantie",
    "composition": "Geschützte Einheit, Komposition",
    "mechanisms": "Mechanismen",
    "implementation": "Implementierung",
    "utility": "Nutzen",
    "audit": "Audit",
    "sensitivity": "Empfindlichkeit der Wahl",
    "collection": "Erhebung der Daten",
    "provenance": "Vertrauensmodell, Herkunft",
    "internal": "Nur für den Eigentümer der Daten",
    "not protected": "Was sie nicht schützt",
    "best attack": "Der beste Angriff auf diesen Lauf",
    "found": "Wie „{name}“ gefunden wird",
    "probabilities": "Wie weit Wahrscheinlichkeiten stimmen",
    "importances": "Auf welche Spalten das Modell achtet",
    "settings": "Warum diese Einstellungen",
    "who": "Wer geschützt ist",
    "who unit": "Jede Einheit „{unit}“, mit allen ihren Zeilen zusammen.",
    "who record": "Jeder Datensatz: eine Zeile der Tabelle. Hat eine Person mehrere Zeilen, so ist jede Zeile für sich "
    "geschützt, und die Person weniger.",
    "who label": "Das Label jeder Zeile. Nicht geschützt ist, welche Zeilen es gibt und was neben dem Label in ihnen "
    "steht.",
    "who labels": "Alle Labels jeder Einheit „{unit}“. Nicht geschützt ist, welche Zeilen es gibt und was neben dem "
    "Label in ihnen steht.",
    "who stated": "Wen der Eigentümer der Daten angibt: „{stated}“.",
    "owner states": "Das gilt, wenn die Daten einer Einheit „{unit}“ an genau einen Lehrer gingen, wie der Eigentümer "
    "der Daten angibt.",
    "leaves": "Was herausgegeben wird",
    "leaves model": "ein Modell: {model}",
    "leaves labels": "verrauschte Labels von {n} öffentlichen Zeilen",
    "leaves pool": "verrauschte Häufigkeiten der Spalten und daraus gezogene Zeilen, die keine Personen sind",
    "leaves later": "bis zu {n} Antworten auf spätere Fragen, die unten schon eingerechnet sind",
    "leaves report": "dieser Bericht, mit Einstellungen und Zahlen, die öffentlich sind",
    "stays": "Die privaten Zeilen bleiben, wo sie sind, ebenso alles, was ohne Rauschen an sie angepasst wurde.",
    "learn": "Was ein Angreifer höchstens erfahren kann",
    "learn add": "Jemand sieht alles, was herausgegeben wird, weiß alles Übrige und soll sagen, ob eine bestimmte "
    "Einheit „{unit}“ in den privaten Daten ist; beides ist gleich wahrscheinlich. Ein solcher Angreifer hat im Mittel "
    "höchstens {right} von 1.000 Malen recht. Ein Münzwurf hat 500 Mal recht.",
    "learn replace": "Jemand sieht alles, was herausgegeben wird, weiß alles Übrige und soll sagen, welche von zwei "
    "gleich wahrscheinlichen Tabellen, die sich in einer Einheit „{unit}“ unterscheiden, die private ist. Ein solcher "
    "Angreifer hat im Mittel höchstens {right} von 1.000 Malen recht. Ein Münzwurf hat 500 Mal recht.",
    "learn labels": "Jemand sieht alles, was herausgegeben wird, weiß alles Übrige und soll sagen, welche von zwei "
    "gleich wahrscheinlichen Fassungen der Labels einer Einheit „{unit}“ die wahre ist. Ein solcher Angreifer hat im "
    "Mittel höchstens {right} von 1.000 Malen recht. Ein Münzwurf hat 500 Mal recht.",
    "learn stated": "Jemand sieht alles, was herausgegeben wird, weiß alles Übrige und soll sagen, welcher von zwei "
    "gleich wahrscheinlichen Datensätzen, die nach Angabe des Eigentümers benachbart sind, der private ist. Ein "
    "solcher Angreifer hat im Mittel höchstens {right} von 1.000 Malen recht. Ein Münzwurf hat 500 Mal recht.",
    "learn nothing": "Nichts wird zugesichert: Das Rauschen dieses Laufs kam aus einem vorgegebenen Startwert. Wer ihn "
    "hat, kann das Rauschen wieder entfernen.",
    "also replace": "Auf die Frage, welche von zwei bestimmten Fassungen der Daten dieser Einheit „{unit}“ die wahre "
    "ist: höchstens {right} von 1.000 Malen.",
    "also add": "Auf die Frage, ob diese Einheit „{unit}“ überhaupt in den privaten Daten ist: höchstens {right} von "
    "1.000 Malen.",
    "seeded earlier": "Nicht abgedeckt ist, was ein früherer Lauf mit demselben Register und vorgegebenem Startwert "
    "veröffentlicht hat.",
    "dots coin": "{n} richtig durch Münzwurf",
    "dots more": "höchstens {n} mehr durch alles, was herausgegeben wird",
    "dots wrong": "mindestens {n} weiterhin falsch",
    "tick everyone": "Das gilt für jede Einheit „{unit}“, auch für ungewöhnliche.",
    "tick method": "Das gilt, was immer ein Angreifer schon weiß, und für jede Methode.",
    "tick later": "Das gilt auf Dauer: Kopieren und Auswerten schwächt es nicht.",
    "tick together": "Das gilt für alles, was herausgegeben wird, zusammen.",
    "tick ledger": "Das gilt für alles, was herausgegeben wird, zusammen mit allem, was dasselbe Register vorher "
    "bezahlt hat.",
    "not": "Das heißt nicht, dass sich über eine Person nichts folgern lässt. Was für viele gilt, soll gelernt werden, "
    "und lässt sich von allen sagen.",
    "caveats": "Einschränkungen der Garantie: {n}; siehe „{heading}“, „Was sie nicht schützt“.",
    "checks": "Nicht bestandene Prüfungen: {n}. Die Garantie gilt womöglich nicht; siehe „{heading}“.",
    "attacked": "Ein Audit widerspricht der Garantie: Sie gilt nicht. Siehe „{heading}“.",
    "figures": "In Zahlen: ε ≤ {epsilon}, δ ≤ {delta}.",
    "use": "Taugt das Modell?",
    "lost": "Ein Teil dessen, was bezahlt wurde, ging verloren, als ein Prozess endete, und wird nie wieder gezogen; "
    "siehe „{heading}“.",
    "lost counts": "Die verrauschten Häufigkeiten der Spalten wurden bezahlt und gingen verloren, als ein Prozess "
    "endete. Das Modell entstand ohne sie und taugt womöglich nichts; siehe „{heading}“.",
    "use accuracy": "Es ordnet {accuracy} von {n} öffentlichen Zeilen richtig zu (95-%-Intervall: {low} bis {high}).",
    "use baseline": "Immer „{name}“ zu sagen, wäre in {share} richtig.",
    "use no better": "Das Modell ist nicht besser als das.",
    "use not clearly better": "Das Modell ist nicht eindeutig besser als das.",
    "use balanced": "Genauigkeit im Mittel der {n} Klassen: {balanced}. Schlechteste Klasse: „{name}“, {recall}.",
    "use number": "Auf {n} öffentlichen Zeilen haben die Vorhersagen R² {r}; der mittlere absolute Fehler ist {error}.",
    "use unknown": "Es gibt keine öffentlichen Zeilen mit Labels, an denen es gemessen werden könnte.",
    "recall": "Trefferquote",
    "recall of": "{share}: {right} von {n} Zeilen, die „{name}“ sind, werden gefunden, {missed} übersehen",
    "precision": "Genauigkeit der Treffer",
    "precision of": "{share} der Zeilen, die das Modell „{name}“ nennt, sind es",
    "precision none": "das Modell nennt keine Zeile „{name}“",
    "false alarms": "Fehlalarme",
    "false alarms of": "{share} der übrigen Zeilen werden fälschlich „{name}“ genannt",
    "auc": "AUC",
    "auc of": "{area} (zufällig 0,5, höchstens 1): wie gut die Wahrscheinlichkeit von „{name}“ die Zeilen ordnet",
    "sign": "Zur Herausgabe freigegeben",
    "sign lines": "Name|Datum|Unterschrift",
}  # fmt: skip

_FRENCH = {
    "eyebrow": "quorate · rapport de confidentialité",
    "title": "rapport de confidentialité",
    "rest": "Les pages suivantes sont en anglais.",
    "summary": "En une page",
    "guarantee": "Garantie de confidentialité",
    "composition": "Unité protégée, composition",
    "mechanisms": "Mécanismes",
    "implementation": "Implémentation",
    "utility": "Utilité",
    "audit": "Audit",
    "sensitivity": "Sensibilité du choix",
    "collection": "Collecte des données",
    "provenance": "Modèle de confiance, provenance",
    "internal": "Pour le détenteur des données seul",
    "not protected": "Ce qu'elle ne protège pas",
    "best attack": "La meilleure attaque contre cette exécution",
    "found": "Comment « {name} » est reconnue",
    "probabilities": "À quel point les probabilités sont justes",
    "importances": "Les colonnes que le modèle regarde",
    "settings": "Pourquoi ces réglages",
    "who": "Qui est protégé",
    "who unit": "Chaque unité « {unit} », avec toutes ses lignes ensemble.",
    "who record": "Chaque enregistrement : une ligne de la table. Si une personne a plusieurs lignes, chaque ligne est "
    "protégée pour elle-même, et la personne l'est moins.",
    "who label": "L'étiquette de chaque ligne. Ne sont pas protégés l'existence des lignes ni leur contenu hors de "
    "l'étiquette.",
    "who labels": "Toutes les étiquettes de chaque unité « {unit} ». Ne sont pas protégés l'existence des lignes ni "
    "leur contenu hors de l'étiquette.",
    "who stated": "Qui le détenteur des données indique : « {stated} ».",
    "owner states": "Cela vaut si les données d'une unité « {unit} » sont allées à un seul enseignant, comme le "
    "détenteur des données l'indique.",
    "leaves": "Ce qui est communiqué",
    "leaves model": "un modèle : {model}",
    "leaves labels": "les étiquettes bruitées de {n} lignes publiques",
    "leaves pool": "des effectifs bruités des colonnes, et des lignes qui en sont tirées et ne sont personne",
    "leaves later": "jusqu'à {n} réponses à des questions ultérieures, déjà comptées ci-dessous",
    "leaves report": "ce rapport, avec des réglages et des chiffres publics",
    "stays": "Les lignes privées restent où elles sont, ainsi que tout ce qui leur a été ajusté sans bruit.",
    "learn": "Ce qu'un attaquant peut apprendre au plus",
    "learn add": "Quelqu'un voit tout ce qui est communiqué, sait tout le reste et doit dire si une unité « {unit} » "
    "donnée est dans les données privées ; les deux sont également probables. En moyenne, un tel attaquant a raison au "
    "plus {right} fois sur 1 000. Un tirage à pile ou face a raison 500 fois.",
    "learn replace": "Quelqu'un voit tout ce qui est communiqué, sait tout le reste et doit dire laquelle de deux "
    "tables également probables, qui diffèrent d'une unité « {unit} », est la table privée. En moyenne, un tel "
    "attaquant a raison au plus {right} fois sur 1 000. Un tirage à pile ou face a raison 500 fois.",
    "learn labels": "Quelqu'un voit tout ce qui est communiqué, sait tout le reste et doit dire laquelle de deux "
    "versions également probables des étiquettes d'une unité « {unit} » est la vraie. En moyenne, un tel attaquant a "
    "raison au plus {right} fois sur 1 000. Un tirage à pile ou face a raison 500 fois.",
    "learn stated": "Quelqu'un voit tout ce qui est communiqué, sait tout le reste et doit dire lequel de deux jeux de "
    "données également probables, voisins selon le détenteur des données, est le jeu privé. En moyenne, un tel "
    "attaquant a raison au plus {right} fois sur 1 000. Un tirage à pile ou face a raison 500 fois.",
    "learn nothing": "Rien n'est garanti : le bruit de cette exécution vient d'une graine donnée, et qui la possède "
    "peut retirer le bruit.",
    "also replace": "À la question de savoir laquelle de deux versions des données de cette unité « {unit} » est la "
    "vraie : au plus {right} fois sur 1 000.",
    "also add": "À la question de savoir si cette unité « {unit} » est bien dans les données privées : au plus {right} "
    "fois sur 1 000.",
    "seeded earlier": "N'est pas couvert ce qu'une exécution antérieure du même registre a publié avec un bruit à "
    "graine donnée.",
    "dots coin": "{n} fois raison à pile ou face",
    "dots more": "{n} de plus grâce à tout ce qui est communiqué, au plus",
    "dots wrong": "{n} fois encore tort, au moins",
    "tick everyone": "Cela vaut pour chaque unité « {unit} », même inhabituelle.",
    "tick method": "Cela vaut quoi qu'un attaquant sache déjà, et quelle que soit sa méthode.",
    "tick later": "Cela vaut pour toujours : copier et analyser n'affaiblit rien.",
    "tick together": "Cela vaut pour tout ce qui est communiqué, ensemble.",
    "tick ledger": "Cela vaut pour tout ce qui est communiqué, avec tout ce que le même registre a payé auparavant.",
    "not": "Cela ne dit pas qu'on ne peut rien conclure d'une personne. Ce qui vaut pour beaucoup est appris à "
    "dessein, et peut se dire de chacun.",
    "caveats": "Limites de la garantie : {n} ; voir « {heading} », « Ce qu'elle ne protège pas ».",
    "checks": "Contrôles échoués : {n}. La garantie peut ne pas valoir ; voir « {heading} ».",
    "attacked": "Un audit contredit la garantie : elle ne vaut pas. Voir « {heading} ».",
    "figures": "En chiffres : ε ≤ {epsilon}, δ ≤ {delta}.",
    "use": "Le modèle est-il utile ?",
    "lost": "Une partie de ce qui a été payé a été perdue à la fin d'un processus et n'est jamais tirée de nouveau ; "
    "voir « {heading} ».",
    "lost counts": "Les fréquences bruitées des colonnes ont été payées et perdues à la fin d'un processus. Le modèle "
    "a été fait sans elles et peut être sans utilité ; voir « {heading} ».",
    "use accuracy": "Il classe correctement {accuracy} de {n} lignes publiques (intervalle à 95 % : {low} à {high}).",
    "use baseline": "Toujours dire « {name} » serait correct pour {share}.",
    "use no better": "Le modèle ne fait pas mieux.",
    "use not clearly better": "Le modèle ne fait pas clairement mieux.",
    "use balanced": "Exactitude moyenne des {n} classes : {balanced}. Classe la moins bien reconnue : « {name} », "
    "{recall}.",
    "use number": "Sur {n} lignes publiques, ses prédictions ont un R² de {r} ; l'erreur absolue moyenne est {error}.",
    "use unknown": "Il n'y a pas de lignes publiques étiquetées pour le mesurer.",
    "recall": "Rappel",
    "recall of": "{share} : {right} de {n} lignes « {name} » sont trouvées, {missed} sont manquées",
    "precision": "Précision",
    "precision of": "{share} des lignes que le modèle dit « {name} » le sont",
    "precision none": "le modèle ne dit « {name} » d'aucune ligne",
    "false alarms": "Fausses alertes",
    "false alarms of": "{share} des autres lignes sont dites « {name} » à tort",
    "auc": "AUC",
    "auc of": "{area} (0,5 au hasard, 1 au mieux) : comment la probabilité de « {name} » ordonne les lignes",
    "sign": "Communication approuvée",
    "sign lines": "Nom|Date|Signature",
}  # fmt: skip


def _unbroken(text: str) -> str:
    """Hold a mark of French, and a sign of a figure, on the line of what it belongs to."""
    for mark in ("»", ":", ";", "?", "%", "000"):
        text = text.replace(f" {mark}", f"\N{NO-BREAK SPACE}{mark}")
    return text.replace("« ", "«\N{NO-BREAK SPACE}")


WORDS: Final[Mapping[Language, Mapping[str, str]]] = MappingProxyType(
    {
        "en": MappingProxyType(_ENGLISH),
        "de": MappingProxyType(_GERMAN),
        "fr": MappingProxyType({key: _unbroken(text) for key, text in _FRENCH.items()}),
    }
)

#: The marks of decimals and of thousands.
_MARKS: Final[Mapping[Language, tuple[str, str]]] = MappingProxyType(
    {"en": (".", ","), "de": (",", "."), "fr": (",", "\N{NO-BREAK SPACE}")}
)
#: What one row, and one label, is called where the owner names no unit.
_UNITS: Final[Mapping[str, Mapping[Language, str]]] = MappingProxyType(
    {
        "record": {"en": "record", "de": "Datensatz", "fr": "enregistrement"},
        "label": {"en": "row", "de": "Zeile", "fr": "ligne"},
        "person": {"en": "person", "de": "Person", "fr": "personne"},
    }
)


def figure(written: str, language: Language) -> str:
    r"""Write a figure as a language does, from how English writes it.

    Examples
    --------
    >>> figure("1,124.5", "de"), figure("95.9 %", "fr")
    ('1.124,5', '95,9\xa0%')
    """
    decimal, thousands = _MARKS[language]
    translated = written.translate(str.maketrans(".,", decimal + thousands))
    return translated if language == "en" else translated.replace(" %", "\N{NO-BREAK SPACE}%")


def unit_in(unit: str, language: Language) -> str:
    """Return the word for a unit: the owner's own, or that of a language for those that quorate names."""
    return _UNITS[unit][language] if unit in _UNITS else unit


def subheading(language: Language, key: str, **values: str) -> Markup:
    """Return a heading within a section, whose text is in English."""
    return element("h3", WORDS[language][key].format(**values), lang=None if language == "en" else language)
